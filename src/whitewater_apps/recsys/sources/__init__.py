"""Where a log comes from: simulated, Criteo's or MovieLens' files, or files whose schema is declared."""
