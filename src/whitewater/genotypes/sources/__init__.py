"""The formats that genotypes are read from; each module opens one."""
