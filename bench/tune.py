#!/usr/bin/env python3
"""Plants situations with known remedies, runs `tailbound tune` in each, and judges what it keeps.

    bench/tune.py                      all situations, at most 30 minutes each
    bench/tune.py --only hog,quota     some of them

Each situation has one or two remedies, and at least six decoys: changes that answer the same cause word and do nothing about the cause.
`tune` gets the decoys with --try, without a mark. Needs root and two CPUs without other work. Right: the first cause is the planted one,
at least one remedy is kept, no decoy is kept, and the gain on fresh trials is confirmed.
"""
import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from situations import sums
from situations.table import SITUATIONS

TOP = Path(__file__).resolve().parent.parent


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", type=Path, default=TOP / "target/release/tailbound")
    p.add_argument("--only", help="situations, with commas")
    p.add_argument("--seed", default="1", help="seed of the order within pairs")
    p.add_argument("--trial", default="2s", help="length of a trial")
    p.add_argument("--out", type=Path, help="directory for the receipts and records")
    return p.parse_args()


def run(situation, given, folder):
    """Runs `tune`; returns the exit code, the receipt (None without one), and the seconds that it took."""
    study, out = folder / f"{situation.name}.yaml", folder / situation.name
    study.write_text(f"study: {situation.name}\n{situation.study}quiet: off\n")
    # Unlike `ip netns exec`, nsenter leaves /sys as it is, where the kernel's events are.
    inside = ["nsenter", f"--net=/run/netns/{situation.netns}"] if situation.netns else []
    words = [*inside, given.binary.resolve(), "tune", "--for", "p99", "--yes", "--beside", "--seed", given.seed, "--out", out]
    words += ["--set", f"measure.duration={given.trial}"]
    words += [word for decoy in situation.decoys for word in ("--try", decoy)]
    with situation.plant() as group:
        began = time.monotonic()
        process = subprocess.Popen([*words, study], preexec_fn=group and (lambda: group.join("0")))
        try:
            code = process.wait(timeout=3600)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        seconds = time.monotonic() - began
    receipt = out / "receipt.json"
    return code, json.loads(receipt.read_text()) if receipt.exists() else None, seconds


def faults(situation, code, receipt, seconds):
    """What is wrong with a receipt, as sentences."""
    if receipt is None:
        return [f"`tune` ended with exit code {code} and without a receipt"]
    found = []
    first = receipt["causes_before"][0]["text"] if receipt["causes_before"] else "none"
    if situation.cause not in first:
        found.append(f"the first cause is `{first}`")
    if not any(setting.startswith(situation.remedies) for setting in receipt["kept"]):
        found.append("no remedy was kept")
    tried = {tuple(one["settings"]): one for one in receipt["tried"]}
    for decoy in situation.decoys:
        one = tried.get((decoy,))
        outcome = one["outcome"] if one else "no_time_left"
        if outcome == "kept":
            found.append(f"the decoy `{decoy}` was kept")
        elif outcome == "no_time_left":
            found.append(f"the decoy `{decoy}` was not tried")
        elif isinstance(outcome, dict) and "not_possible" in outcome:
            print(f"  not possible here: {decoy}: {outcome['not_possible']}")
    if not (receipt.get("gain") or {}).get("confirmed"):
        found.append("the gain was not confirmed")
    if seconds > 1800:
        found.append(f"it took {seconds / 60:.0f} minutes")
    return found


def row(situation, receipt, seconds, found):
    gain = (receipt or {}).get("gain")
    ratio = "{:.3f} ({:.3f} to {:.3f})".format(*gain["ratio"]) if gain else "-"
    figures = f"{gain['without_ns'] / 1e6:.2f} ms | {gain['with_ns'] / 1e6:.2f} ms" if gain else "- | -"
    kept = ", ".join(f"`{setting}`" for setting in (receipt or {}).get("kept", []))
    others = sum(one["outcome"] != "kept" for one in (receipt or {}).get("tried", []))
    judged = "; ".join(found) or "right"
    return f"| {situation.name} | {kept or '-'} | {others} | {figures} | {ratio} | {seconds / 60:.1f} | {judged} |"


def main():
    given = options()
    names = given.only.split(",") if given.only else [one.name for one in SITUATIONS]
    chosen = [one for one in SITUATIONS if one.name in names]
    if len(chosen) != len(names):
        sys.exit(f"--only: the situations are {', '.join(one.name for one in SITUATIONS)}")
    rows, receipts, wrong = [], [], 0
    with tempfile.TemporaryDirectory(prefix="tailbound-tune-") as temporary:
        folder = given.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for situation in chosen:
            print(f"{situation.name}:", flush=True)
            code, receipt, seconds = run(situation, given, folder)
            found = faults(situation, code, receipt, seconds)
            wrong += bool(found)
            receipts += [receipt] if receipt else []
            rows.append(row(situation, receipt, seconds, found))
            print(f"  {'; '.join(found) or 'right'} ({seconds / 60:.1f} min)", flush=True)
    print("\n| situation | kept | not kept | p99 before | p99 after | ratio (95 %) | min | judged |\n|---|---|---|---|---|---|---|---|")
    print("\n".join(rows))
    print(f"\nPredicted and achieved ratio of p99, by rule:\n\n{sums.table(receipts)}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
