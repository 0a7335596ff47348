"""Training: what a run is (``spec``), and how it is trained (``run``): all that its numbers depend on."""
