"""Which pages matter: PageRank of a web, its communities, and ranked search."""
