"""One file for each table or figure of the paper, and what they share.

The file of an artifact defines ``ARTIFACT``. :func:`suite.discovery.locate` finds it by its folder, so no list has to be edited.
"""
