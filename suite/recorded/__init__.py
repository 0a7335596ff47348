"""Recorded runs: packed beside the recorded tables, so that a clone shows everything without training anything."""
