"""Files, progress and errors, which every other package may use."""
