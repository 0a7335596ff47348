"""The eight tasks of Table 4, in its order."""
