"""Principal components of genotypes: Whitewater against the tools that a geneticist would pick."""
