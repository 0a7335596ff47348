"""Recorded runs: packed beside the recorded tables, so that a clone shows everything without training anything.

- :mod:`suite.recorded.run`: a recorded run, and whether its spec, record, history and probes belong together;
- :mod:`suite.recorded.archive`: the file that runs are packed in;
- :mod:`suite.recorded.merging`: packing a results folder, and taking in what another machine has packed;
- :mod:`suite.recorded.restore`: unpacking a run, and whether it can take the place of training;
- :mod:`suite.recorded.origin`: which of the runs in a results folder were not trained there, in words;
- :mod:`suite.recorded.marking`: an artifact with those words on it;
- :mod:`suite.recorded.build`: everything from recorded runs, without Snakemake.
"""
