"""The confusion matrix with Wilson intervals, as data and as Markdown."""
import math
from .kinds import KINDS

Z = 1.959964
COUNTS = ("planted", "faults", "attainable", "right", "wrong", "decoys", "named", "unclear")


def wilson(hits, count):
    """95 % interval of a proportion (E. B. Wilson, JASA 22, 1927)."""
    if count == 0:
        return 0.0, 1.0
    share, square = hits / count, Z * Z
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = Z / (1 + square / count) * math.sqrt(share * (1 - share) / count + square / (4 * count * count))
    return max(0.0, middle - half), min(1.0, middle + half)


def rate(hits, count):
    low, high = wilson(hits, count)
    return {"hits": hits, "of": count, "low": round(low, 4), "high": round(high, 4)}


def summary(judged):
    """`judged`: pairs of a planted fault, with `harm`, and its verdict."""
    kinds = {}
    for fault, verdict in judged:
        row = kinds.setdefault(fault.item.kind, {**dict.fromkeys(COUNTS, 0), "columns": {}})
        row["planted"] += 1
        if verdict.role == "fault":
            row["faults"] += 1
            row["attainable"] += verdict.attainable
            row["right"] += verdict.right
            row["wrong"] += bool(verdict.wrong)
            row["columns"][verdict.top] = row["columns"].get(verdict.top, 0) + 1
        elif verdict.role == "decoy":
            row["decoys"] += 1
            row["named"] += verdict.named
        else:
            row["unclear"] += 1
    total = {key: sum(row[key] for row in kinds.values()) for key in COUNTS}
    for row in [*kinds.values(), total]:
        row["named_right"] = rate(row["right"], row["faults"])
        row["decoys_named"] = rate(row["named"], row["decoys"])
    return {"total": total, "kinds": dict(sorted(kinds.items(), key=lambda item: list(KINDS).index(item[0])))}


def percent(row):
    return f"{100 * row['hits'] / row['of']:.0f} % ({100 * row['low']:.0f} to {100 * row['high']:.0f})" if row["of"] else ""


def markdown(found):
    kinds, total = found["kinds"], found["total"]
    faults = {name: row for name, row in kinds.items() if row["faults"]}
    lines = ["| planted | harmful | attainable | named right | share (95 %) | another cause above 20 % |", "|---" * 6 + "|"]
    for name, row in [*faults.items(), ("all", total)]:
        cells = [name, row["faults"], row["attainable"], row["right"], percent(row["named_right"]), row["wrong"]]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += ["", "| decoy, or fault without harm | number | named | share (95 %) |", "|---|---|---|---|"]
    for name, row in [*((n, r) for n, r in kinds.items() if r["decoys"]), ("all", total)]:
        lines.append(f"| {name} | {row['decoys']} | {row['named']} | {percent(row['decoys_named'])} |")
    columns = [name for name in faults if any(name in row["columns"] for row in faults.values())]
    columns += sorted({column for row in faults.values() for column in row["columns"]} - set(columns))
    lines += ["", "Largest part of the excess: rows were planted, columns were named.", "",
              "| planted | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, row in faults.items():
        lines.append(f"| {name} | " + " | ".join(str(row["columns"].get(column, "")) for column in columns) + " |")
    if total["unclear"]:
        lines += ["", f"{total['unclear']} of {total['planted']} are left out: they were not planted, or a decoy did harm."]
    return "\n".join(lines)
