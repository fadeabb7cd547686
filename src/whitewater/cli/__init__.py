"""The command `whitewater`, a module for each of its commands."""
