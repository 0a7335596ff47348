"""One file for each table or figure of the paper, and what they share.

A file is found by where it lies (:func:`suite.discovery.locate`) and defines ``ARTIFACT``; nothing else has to be edited.
"""
