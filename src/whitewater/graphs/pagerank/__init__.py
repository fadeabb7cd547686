"""PageRank: in-edges that numbers are pulled along, and the power iteration over them."""
