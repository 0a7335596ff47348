"""The regression check: fresh results against the recorded ones, and whether a number left its tolerance.

The rule. Better counts as much as worse: what is not as it was has to be explained, and recorded anew
(``make record``).

**Which rows are compared.** Rows of the same name: the fewest leading columns that tell all rows of a table apart
(:mod:`suite.check.tables`). A recorded row that is no longer there fails; a new one is listed. Rows that depend
on the machine (times, what bfloat16 rounds off) are left out, and the summary says so.

**Trained numbers** have the tolerance t * max(s, s0) * sqrt(1/n + 1/n_fresh), in either direction
(:mod:`suite.check.spread`):

- s is the row's standard deviation over the recorded seeds. From three seeds that is a poor estimate, at times near
  zero by luck. So it is joined by s0, the spread of the rows like it (same unit, method, quantity and step; other
  models, settings and matrices; or, where there are none, all of its unit), and the larger of the two counts. A row
  that spreads far more than the others keeps its own, and weighs little in s0.
- How alike rows are is estimated too (d0), for all rows of a unit together. The t quantile has d + d0 degrees of
  freedom, so that rows which tell little about each other have wide tolerances.
- s and s0 are those of logarithms where all numbers of a pool are positive: relative, so to speak, for perplexities,
  singular values and orthogonality errors. Otherwise they are absolute. What spreads by factors, so that the tolerance
  of its logarithm is beyond a factor of two, is far from normal and has none: "not judged".
- The nominal level is 5% for a whole check (``LEVEL``; docs/faults.md has the simulated one), in equal shares to its artifacts, and to the rows of each: a table's
  tolerance does not depend on how many points some figure has.

The formula is for independent seeds. Recorded and fresh runs share theirs, so that on one machine they are equal bit
by bit and the rule is conservative. On another one, or after a change in the order of additions, rounding grows along
a run until a number is as good as drawn anew (single runs moved by up to 3%), and the formula is what then holds.
Assumed: rows of a pool are independent (points of a curve, which are not, are in different pools), and means over seeds
are about normal.

- A recorded row without a spread, among rows without one (a single seed; a share that was 1 for every seed), is "not
  judged" either: shown and counted, never passed.
- A number that some run lacks (it diverged, or never reached a level) has no mean. Where all recorded runs had one and
  not all fresh ones do, or none had one and some fresh ones do, it fails. Where only some recorded ones had it, either
  may happen, and it is not judged. The level does not cover this.
- Counts of collapsed runs are shown where they change. The perplexity decides, or, where that has no tolerance, the
  count: it fails if none had collapsed and all do now, or the other way round.

**Numbers that no seed moves** (scale "any", and counts of elements at any scale) are equal: whole numbers exactly,
others to ``ROUNDING``. Those that come with an interval (``theory.csv``) have to lie in the recorded one.

**Claims** are judged by their effect in the same way; its spread is that of the recorded interval.

**Texts** (results, rules, units, corpora, counts in words) fail where they are not equal. Result, direction and
crossing of trained numbers follow from numbers that are judged, and one near its edge may flip: shown, and no failure
of their own. Columns that the recorded table does not have yet are not compared.
"""
