"""One file for each table or figure of the paper, and what they share.

A file that defines ``ARTIFACT`` is found by :func:`analyses.artifact.discover`; nothing else has to be edited.
"""
