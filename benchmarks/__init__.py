"""How long layers, kernels and training steps take, and what memory: ``make bench`` and ``make bench-gpu``."""
