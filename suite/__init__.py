"""What the suite is made of: scales, artifacts, claims, and the runs that artifacts ask for.

- :mod:`suite.scale`, :mod:`suite.context`, :mod:`suite.claim`, :mod:`suite.artifact`: what each of them is, in this order;
- :mod:`suite.discovery`, :mod:`suite.collection`, :mod:`suite.sources`: which artifacts and runs there are, and when one is remade;
- :mod:`suite.plan`, :mod:`suite.why`, :mod:`suite.status`, :mod:`suite.check`: what is asked of them before, during and after training.
"""
