"""The operations of :mod:`poet.kernels` as Triton kernels, one file each, under the same names.

Nothing on the CPU path imports this package. Every kernel accumulates in fp32, writes each number of its result from
exactly one program (no atomics), and so returns the same bits each time.
"""
