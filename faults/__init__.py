"""Small errors that are planted in a copy of the code, to see which test or check notices them: ``make faults``."""
