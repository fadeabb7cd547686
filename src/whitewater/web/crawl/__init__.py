"""A polite crawler that can go on where it was stopped."""
