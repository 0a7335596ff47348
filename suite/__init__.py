"""The suite: scales, artifacts, claims, and the runs that artifacts ask for."""
