"""Applications: what to copy, and to change."""
