#!/usr/bin/env python3
"""Plants faults of known kind, place and time into real runs, and judges the causes that the report names.

    bench/why.py                       256 faults and 126 decoys over udp, cyclonedds and fastdds, about five minutes
    bench/why.py --short               30 faults and 10 decoys, at most a minute
    bench/why.py --self-test           tests of the judge, with incidents made by hand
    bench/why.py --user 65534          Tailbound runs as an ordinary user: what it names must not be false
    bench/why.py --busy                beside two compilers
    bench/why.py --busy --priority     beside two compilers, with ends of real-time priority

Needs root, a C compiler, and two CPUs without other work. The study knows nothing of the faults. Whether a fault did harm is
decided by the timestamps of the record, read without Tailbound. docs/src/planted-faults.md describes the kinds and the rules.
"""
import argparse
import hashlib
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from causes import judge, matrix, plan, raw
from causes.kinds import BRIDGE, DRIVERS, HELD, KINDS, LOOPBACK
from causes.session import Session
from causes.stage import Stage

TOP = Path(__file__).resolve().parent.parent
SHORT_LAYOUTS = {LOOPBACK, BRIDGE}


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", type=Path, default=TOP / "target/release/tailbound")
    p.add_argument("--seed", help="seed of the plan; without it a new one is drawn and printed")
    p.add_argument("--faults", type=int)
    p.add_argument("--decoys", type=int)
    p.add_argument("--drivers", default=",".join(DRIVERS))
    p.add_argument("--only", help="kinds to plant, with commas")
    p.add_argument("--attribution", default="on", help="value of the study key")
    p.add_argument("--rate", type=int, default=500, help="messages per second")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="passed on to `tailbound run`, e.g. payload='16 KiB'")
    p.add_argument("--short", action="store_true")
    p.add_argument("--busy", action="store_true")
    p.add_argument("--priority", action="store_true", help="the ends, and the process of Open vSwitch, have SCHED_FIFO, or a large share of"
                   " CPU time for kinds of faults that do nothing to real-time threads")
    p.add_argument("--user", type=int, help="numeric id of the user as which Tailbound runs")
    p.add_argument("--least", type=float, help="exit with 1 if the share of faults named right is below this share for certain"
                   " (upper end of its 95 %% interval), or if a decoy is named")
    p.add_argument("--nothing-false", action="store_true", help="exit with 1 if another cause has more than 20 %% of what a fault did, or"
                   " if a decoy is named")
    p.add_argument("--out", type=Path, help="directory for result.json, result.md and, with --keep, the records")
    p.add_argument("--keep", action="store_true")
    p.add_argument("--built", type=Path, help="directory with the helper program and the driver `held`, where no C compiler is")
    p.add_argument("--own-machine", action="store_true", help="in a guest: settings of the whole machine may change, and are not put back")
    p.add_argument("--self-test", action="store_true")
    given = p.parse_args()
    given.faults = given.faults if given.faults is not None else 30 if given.short else 256
    given.decoys = given.decoys if given.decoys is not None else 10 if given.short else 126
    given.seed = given.seed or str(random.SystemRandom().randrange(1 << 32))
    if given.short and given.drivers == ",".join(DRIVERS):
        given.drivers = "udp,cyclonedds"
    return given


class Busy:
    """Two compilers that never end, one per CPU."""

    LOOP = 'while :; do cc -O2 -c -o /dev/null "$0"; done'

    def __init__(self, folder):
        # A source that keeps a compiler busy for seconds.
        source = folder / "busy.c"
        one = "double f{0}(double x) {{ double s = 0; for (int i = 0; i < {0} + 9; i++) s += x * s / (i + {0}.5); return s; }}"
        source.write_text("\n".join(one.format(number) for number in range(6000)))
        self.loops = [subprocess.Popen(["sh", "-c", self.LOOP, source], start_new_session=True) for _ in range(2)]

    def close(self):
        for loop in self.loops:
            os.killpg(loop.pid, signal.SIGKILL)
            loop.wait()


def run_all(given, stage):
    """Runs the whole plan. Returns pairs of fault and verdict, and facts of each run."""
    possible = stage.possible()
    present = stage.drivers()
    drivers = [driver for driver in [*given.drivers.split(","), HELD] if driver in present]
    if given.short:
        possible = {name: there & SHORT_LAYOUTS for name, there in possible.items() if there & SHORT_LAYOUTS}
    runs = plan.make(given.seed, given.faults, given.decoys, drivers, possible, given.only and given.only.split(","), given.priority)
    left_out = sorted(name for name, kind in KINDS.items() if kind.layouts and (name not in possible or not set(kind.drivers) & set(drivers)))
    print(f"seed {given.seed}: {sum(len(run.items) for run in runs)} faults and decoys in {len(runs)} runs, drivers {', '.join(drivers)}"
          + (f"; not possible here: {', '.join(left_out)}" if left_out else ""), flush=True)
    judged, facts = [], []
    for number, run in enumerate(runs):
        session = Session(stage, run, number, given.attribution, given.set)
        about = {"run": number, "layout": run.layout, "driver": run.driver, "items": len(run.items)}
        try:
            found, fact = judge_run(session.go())
        except (RuntimeError, ValueError, OSError) as error:
            # The other runs still count. This one is named in the result, and the program fails at the end.
            facts.append({**about, "failed": str(error)})
            print(f"{number + 1} of {len(runs)}: {run.layout} {run.driver}, {len(run.items)} items lost: {error}", flush=True)
            session.close()
            continue
        judged += found
        facts.append({**about, **fact})
        print(f"{number + 1} of {len(runs)}: {run.layout} {run.driver}, {fact['right']} of {fact['faults']} named right"
              + (f"; {fact['notes']}" if fact["notes"] else ""), flush=True)
        session.close(given.keep and given.out)
    return judged, facts


def judge_run(outcome):
    trial = raw.find(raw.slots(outcome.record))
    condition = outcome.report["conditions"][0]
    incidents, losses = condition.get("incidents") or [], condition.get("losses") or []
    judged, lost = [], raw.losses(trial)
    for fault in outcome.planted:
        fault.harm = raw.harm(trial, fault.begin, fault.end, KINDS[fault.item.kind].recovery)
        judged.append((fault, judge.judge(fault, fault.harm, incidents, losses, lost)))
    notes = outcome.notes + [f"the run ended with {outcome.status}"] * bool(outcome.status)
    faults = [verdict for _, verdict in judged if verdict.role == "fault"]
    # The same incidents, found twice: a difference is a mistake in one of the two programs.
    ours = {(i.begin, i.excess) for i in trial.incidents}
    strange = sum((i["begin_ns"], i["excess_ns"]) not in ours for i in incidents)
    return judged, {"status": outcome.status, "notes": "; ".join(notes), "median_ns": trial.median, "limit_ns": trial.limit,
                    "raw_incidents": len(trial.incidents), "report_incidents": len(incidents), "unlike_raw": strange,
                    "faults": len(faults), "right": sum(verdict.right for verdict in faults)}


def line(fault, verdict):
    item, harm = fault.item, fault.harm
    return {"id": item.id, "run": fault.run, "kind": item.kind, "end": item.end, "size_ns": item.size_ns, "begin_ns": fault.begin,
            "end_ns": fault.end, "program": fault.name, "log": fault.log, "harm_ns": harm.ns, "lost": harm.lost,
            "excess_ns": sum(incident.excess for incident in harm.incidents), **vars(verdict)}


def main():
    given = options()
    if given.self_test:
        from causes import self_test
        return self_test.run()
    if os.geteuid() != 0:
        sys.exit("bench/why.py must run as root, because it stops, freezes and slows other processes")
    # What was stopped, frozen or made must be freed and removed, also if this program is asked to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench/why.py was asked to end"))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="why-", ignore_cleanup_errors=True) as folder:
        busy = Busy(Path(folder)) if given.busy else None
        try:
            own = given.own_machine
            with Stage(given.binary.resolve(), Path(folder), given.user, given.rate, given.built, own, given.busy) as stage:
                judged, facts = run_all(given, stage)
        finally:
            if busy:
                busy.close()
    found = matrix.summary(judged)
    table = matrix.markdown(found)
    print(table)
    for fault, verdict in judged:
        if verdict.named or verdict.role == "fault" and not verdict.right:
            print(f"  {fault.item.id} {fault.item.kind} {fault.item.end}, run {fault.run}, harm {fault.harm.ns / 1e6:.2f} ms: "
                  + (f"decoy named ({verdict.top})" if verdict.named else verdict.reason))
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(given.binary.read_bytes()).hexdigest()
        result = {"seed": given.seed, "binary_sha256": digest, "kernel": platform.release(), "user": given.user, "busy": given.busy, "priority": given.priority,
                  "attribution": given.attribution, "rate_hz": given.rate, "set": given.set, "seconds": round(time.monotonic() - began, 1), **found, "runs": facts,
                  "items": [line(*pair) for pair in judged]}
        (given.out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
        (given.out / "result.md").write_text(table + "\n")
    print(f"{time.monotonic() - began:.0f} s")
    total = found["total"]
    judged_false = total["named"] > 0 or given.nothing_false and total["wrong"] > 0
    if any("failed" in fact for fact in facts):
        return 1
    checked = given.least is not None or given.nothing_false
    return int(checked and (judged_false or total["named_right"]["high"] < (given.least or 0)))


if __name__ == "__main__":
    sys.exit(main())
