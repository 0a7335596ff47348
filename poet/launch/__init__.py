"""Starting runs, watching them and keeping their files. Nothing here changes a run's numbers."""
