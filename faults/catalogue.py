"""The faults that are planted, one at a time: realistic errors in a line or so (``python -m faults.plant``)."""

from faults import in_records, in_the_method, in_training

FAULTS = (*in_the_method.FAULTS, *in_training.FAULTS, *in_records.FAULTS)
