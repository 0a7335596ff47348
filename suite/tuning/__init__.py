"""How learning rates are chosen: the protocol in ``config/tuning.yaml``, and the runs that it asks for."""
