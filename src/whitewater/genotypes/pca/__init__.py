"""Principal components of genotypes, and new samples placed among them."""
