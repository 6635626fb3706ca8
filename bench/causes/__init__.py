"""Planted faults with known truth: the parts of `bench/why.py`.

The data goes one way: `kinds` (what can be planted) -> `plan` (a seeded list of faults and decoys, in runs) -> `session` (one
run of Tailbound, into which `plant.c` plants the faults; `target`, `groups` and `network` find and prepare what the faults
act on) -> `raw` (which faults did harm, from the timestamps of the record alone, read by `parquet`) -> `judge` (which faults
the report named right) -> `matrix` (tables).

`raw` never reads what the report says, and the study knows nothing of the plan.
"""
