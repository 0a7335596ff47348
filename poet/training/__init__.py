"""The training of a run: its specification (``spec``), its state and steps (``run``), and what else its numbers depend on."""
