"""Time and memory of layers, kernels and training steps: ``make bench`` and ``make bench-gpu``."""
