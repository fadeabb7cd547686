"""Genotypes of many samples: read from any source, stored in two bits, and computed with."""
