"""Slips that are planted in a copy of the code to see what notices them: ``make faults``."""
