"""Columns of categories: their values, ids and vocabularies."""
