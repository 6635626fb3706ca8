"""Predicted against achieved, by rule, over receipts of `tailbound tune`.

    python3 -m situations.sums RECEIPT...      (in bench/)
"""
import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import geometric_mean


def by_rule(receipts):
    """For each rule whose changes were measured: the outcomes, and the ratios with and without the change, predicted and achieved.
    A predicted ratio is the estimate of the figure without the cause, divided by the figure."""
    rules = defaultdict(list)
    for receipt in receipts:
        for one in receipt["tried"]:
            if one.get("ratio"):
                estimate = one.get("predicted")
                predicted = estimate["then_ns"] / estimate["now_ns"] if estimate else None
                rules[one["rule"]].append((one["outcome"], predicted, one["ratio"][0]))
    return rules


def ratio(all):
    """Geometric mean of the ratios that are known."""
    known = [max(one, 1e-9) for one in all if one is not None]
    return f"{geometric_mean(known):.2f}" if known else "-"


def table(receipts):
    rows = ["| rule | measured | kept | predicted | achieved |", "|---|---|---|---|---|"]
    for rule, all in sorted(by_rule(receipts).items()):
        kept = [one for one in all if one[0] == "kept"]
        # A rule whose change answers another thread than the one that waited achieves nothing, which is no error of the estimate.
        of = kept or all
        rows.append(f"| `{rule}` | {len(all)} | {len(kept)} | {ratio(p for _, p, _ in of)} | {ratio(a for _, _, a in of)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table([json.loads(Path(name).read_text()) for name in sys.argv[1:]]))
