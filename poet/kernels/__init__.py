"""The operations that POET's speed depends on, one file each.

Each file holds the one PyTorch reference of its operation; the layer, the tests and the benchmarks import that
reference, and it is what runs on a CPU.
"""
