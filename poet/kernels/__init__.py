"""The operations that POET's speed depends on, one file each.

Each file holds the one PyTorch reference of its operation, which is also the CPU path and every device's for fp64, and
registers it with ``torch.library``: shapes for tracing, derivative, floating-point operations for PyTorch's counter, and
for CUDA devices the Triton kernel of the same name in ``poet.kernels.gpu`` (``poet.kernels.dispatch``).
"""
