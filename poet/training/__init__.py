"""Training: what a run is (``spec``), how it is trained (``loop``), and what it leaves behind (``records``)."""
