"""What a scale would cost before it is run: ``make plan SCALE=paper``.

Each run's operations and memory are counted on models whose tensors have no data. Its time comes from a measured rate, or
without one from a stated utilization of the device. Artifacts are put in the order that gives most evidence for each GPU-hour.
"""
