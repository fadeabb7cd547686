"""Where do people come from: the ancestry of samples from their genotypes."""
