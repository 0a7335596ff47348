"""What a scale would cost before it is run: ``make plan SCALE=paper``.

Each run's operations and memory are counted on models without memory, its time comes from a measured rate where there is one
and from a stated utilization of the device where there is none, and artifacts are put in the order that gives most evidence
for each GPU-hour.
"""
