"""Where pages and edges come from."""
