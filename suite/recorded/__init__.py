"""Recorded runs: packed beside the recorded tables, so that a clone shows everything without training anything.

- :mod:`suite.recorded.run`: a recorded run, and whether its spec, record, history and probes belong together;
- :mod:`suite.recorded.archive`: the file that runs are packed in;
- :mod:`suite.recorded.merging`: packing the runs of a results folder, and importing another machine's archive;
- :mod:`suite.recorded.restore`: unpacking a run, and whether it can take the place of training;
- :mod:`suite.recorded.origin`: sentences on the runs of a results folder that were not trained there;
- :mod:`suite.recorded.marking`: building an artifact with such a sentence;
- :mod:`suite.recorded.build`: building all artifacts from recorded runs, without Snakemake.
"""
