"""Starting runs, watching them and keeping their files: what changes no number."""
