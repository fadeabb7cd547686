"""One look for the pictures of all applications."""
