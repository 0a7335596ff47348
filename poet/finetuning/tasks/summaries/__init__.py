"""The data sets of Table 12."""
