"""The faults that are planted: realistic slips of a line or so, one at a time (``python -m faults.plant``)."""

from faults import in_records, in_the_method, in_training

FAULTS = (*in_the_method.FAULTS, *in_training.FAULTS, *in_records.FAULTS)
