"""The published tables (rows R1 to R21), run again: one module a row, its variants beside each other."""
