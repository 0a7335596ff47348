"""The regression check: fresh results against the recorded ones, and whether a number left its tolerance.

A change for the better counts as much as one for the worse: it has to be explained, and recorded (``make record``).

**Which rows are compared.** Rows of the same name. A row is named by the fewest leading columns that tell all rows of
its table apart (:mod:`suite.check.tables`). A recorded row that the fresh table lacks fails; a new row is listed. Rows
that depend on the machine (times, rounding errors of bfloat16) are left out, and the summary says so.

**Trained numbers** have the tolerance t * max(s, s0) * sqrt(1/n + 1/n_fresh), in either direction
(:mod:`suite.check.spread`):

- s is the row's standard deviation over the n recorded seeds. From three seeds that is a poor estimate, at times near
  zero by luck. s0 is the spread that similar rows (a pool) have in common: rows of the same unit, method, quantity and
  step, on other models, settings and matrices. A row without similar rows takes the s0 of all rows of its unit. The
  larger of s and s0 counts. A row that spreads far more than its pool keeps its own s, and weighs little in s0.
- d0 says how alike the spreads of similar rows are; it is estimated from all rows of a unit. The t quantile has d + d0
  degrees of freedom, with d = n - 1. So tolerances are wide where spreads differ much between rows.
- Where all numbers of a pool are positive (perplexities, singular values, orthogonality errors), s and s0 are standard
  deviations of logarithms. Otherwise they are absolute. A number whose logarithm would have a tolerance beyond a factor
  of two is far from normal: it has no tolerance and is "not judged".
- The nominal level of a whole check is 5% (``LEVEL``; docs/faults.md has the simulated one). Artifacts have equal shares
  of it, and so have the rows of an artifact: a table's tolerance does not depend on how many points some figure has.

The formula is for independent seeds, but recorded and fresh runs have the same seeds. On one machine they are equal bit
by bit, and the rule is conservative. On another machine, or with another order of additions, rounding errors grow along
a run until its number is as good as drawn anew (single runs moved by up to 3%); then the formula holds. It assumes that
rows of a pool are independent and means over seeds about normal. Points of a curve are dependent: each has another pool.

- A changed row is "not judged" either if no row of its unit has a spread (a single seed; a share that was 1 for every
  seed): it is shown and counted, never passed.
- A number has no mean if one of its runs lacks it (it diverged, or never reached a level). If all recorded runs had the
  number and not all fresh ones do, or no recorded run had it and some fresh ones do, the check fails. If only some
  recorded runs had it, it is not judged. The level does not cover this.
- Counts of collapsed runs are shown where they change. The perplexity decides. If it has no tolerance, the count does:
  the check fails if no recorded run had collapsed and all fresh ones did, or the other way round.

**Numbers that no seed moves** (scale "any", and counts of elements at any scale) have to be equal: whole numbers exactly,
others to ``ROUNDING``. Those with an interval (``theory.csv``) have to lie in the recorded interval.

**Claims** are judged by their effect in the same way; its spread is computed from the recorded interval.

**Texts** (results, rules, units, corpora, counts in words) fail where they are not equal. Words that follow from a trained
number (result, direction, crossing) may change when numbers move: the change is shown, and fails only with the row's
own number. Columns that the recorded table does not have yet are not compared.
"""
