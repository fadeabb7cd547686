"""Text: tokens, an inverted index, and ranked search."""
