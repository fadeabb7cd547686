"""What this project does on a GPU, shown piece by piece: each a few minutes, with a record of what was seen."""
