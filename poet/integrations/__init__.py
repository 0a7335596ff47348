"""POET inside other libraries' training loops: a file for each."""
