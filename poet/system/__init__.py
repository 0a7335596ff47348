"""Files, progress and errors: what everything else may use."""
