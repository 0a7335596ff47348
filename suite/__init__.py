"""The suite: what is trained, kept and built."""
