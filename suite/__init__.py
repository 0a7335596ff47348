"""The suite: scales, artifacts, claims, and the runs that artifacts ask for.

- :mod:`suite.scale`, :mod:`suite.context`, :mod:`suite.claim`, :mod:`suite.artifact`: the classes that the rest builds on;
- :mod:`suite.discovery`, :mod:`suite.collection`, :mod:`suite.sources`: finding artifacts, collecting their runs, and the source files that remake an artifact;
- :mod:`suite.plan`, :mod:`suite.why`, :mod:`suite.status`, :mod:`suite.check`: plans before training, reasons and progress during it, and checks after it.
"""
