#!/usr/bin/env python3
"""Stops a guest by QMP, in which the pong runs, and judges the causes that the report names by the rules of bench/why.py.

    bench/why_pause.py --kernel target/guests/rt.deb

The stops last 1 to 100 ms, log-uniform, drawn by the seed; as many decoys only ask QEMU for its state. Needs root, QEMU and a kernel
package (`dev/setup vm` downloads one), and a machine without other work.
"""
import argparse
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from causes import matrix, plan, target
from causes.kinds import KINDS
from causes.session import Outcome, Planted
from why import TOP, judge_run, line

STUDY = """\
study: latency
question: When is a message late?
measure: {{ ping-pong: {{ duration: {seconds} s, warm_up: 1 s, timeout: 3 s, receive: block }} }}
rate: {rate} Hz
driver: udp
path: bridge
attribution: machine
quiet: off
ends:
  ping: {{ place: netns, cpus: "0" }}
  pong:
    place:
      vm:
        kernel: {{ package: {kernel} }}
        accelerator: emulated
        vcpus: 1
        vcpu_threads: [{{ policy: fifo, priority: 1, cpus: "1" }}]
        emulator: {{ policy: fifo, priority: 2, cpus: "0" }}
"""
PAUSE_S = 0.4
# Share of the stops that must be named right, as for each kind of bench/why.py.
LEAST_SHARE = 0.75


class Monitor:
    """Connection to the QMP socket of the guest that Tailbound leaves to users."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile("rw")
        self.lines.readline()
        self.say("qmp_capabilities")

    def say(self, word):
        """Returns the time of each event that QEMU reports before it answers, monotonic ns, by its name."""
        self.lines.write(json.dumps({"execute": word}) + "\n")
        self.lines.flush()
        ahead, events = time.time_ns() - time.monotonic_ns(), {}
        while "return" not in (answer := json.loads(self.lines.readline())):
            if "error" in answer:
                raise RuntimeError(f"QEMU: {answer['error']}")
            if "event" in answer:
                at = answer["timestamp"]
                events[answer["event"]] = (at["seconds"] * 1_000_000 + at["microseconds"]) * 1_000 - ahead
        return events


def planned(draw, count):
    names = ["guest_stopped", "guest_asked"] * count
    return [plan.Planned(number, name, "pong", plan.size_ns(draw, KINDS[name]), 0) for number, name in enumerate(names)]


def plant(item, monitor):
    stop, go = ("stop", "cont") if item.kind == "guest_stopped" else ("query-status", "query-status")
    asked = time.monotonic_ns()
    events = monitor.say(stop)
    answered = time.monotonic_ns()
    time.sleep(item.size_ns / 1e9)
    monitor.say(go)
    # QEMU carries out the command when its main thread has a CPU and the lock: until then, the guest runs. Its event comes when all
    # virtual CPUs have stopped. They run again when the other command is answered.
    begin = events["STOP"] if item.kind == "guest_stopped" else asked
    if not asked <= begin <= answered:
        raise RuntimeError("the wall clock was set while a guest was stopped: repeat the run")
    return Planted(item, 0, begin, time.monotonic_ns(), KINDS[item.kind].program)


def run(given, items, folder):
    seconds = 4 + sum(PAUSE_S + item.size_ns / 1e9 for item in items)
    (folder / "study.yaml").write_text(STUDY.format(seconds=round(seconds), rate=given.rate, kernel=given.kernel.resolve()))
    scratch, record = folder / "scratch", folder / "record"
    scratch.mkdir()
    child = subprocess.Popen([given.binary, "run", folder / "study.yaml", "--out", record, "--quiet"], stdout=subprocess.DEVNULL,
                             env={**os.environ, "TMPDIR": str(scratch), "TAILBOUND_STATE_DIR": str(folder / "state")})
    try:
        path = target.wait_for(lambda: next(scratch.glob("*/guest-pong/monitor.sock"), None), 60, child)
        monitor = Monitor(path)
        ping = target.wait_for(lambda: target.find(child.pid, "tb-ping"), 120, child)
        target.wait_for(lambda: target.is_sending(ping, given.rate), 60, child)
        time.sleep(1.5)
        found = []
        for item in items:
            found.append(plant(item, monitor))
            time.sleep(PAUSE_S)
        # A trial with a paused guest is invalid, which is status 6.
        status = child.wait(timeout=120)
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait(timeout=60)
    report = subprocess.run([given.binary, "report", record, "--format", "json"], capture_output=True, text=True).stdout
    return Outcome(found, record, json.loads(report), 0 if status == 6 else status, [])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", type=Path, default=TOP / "target/release/tailbound")
    p.add_argument("--kernel", type=Path, default=TOP / "target/guests/rt.deb")
    p.add_argument("--seed", default=str(random.SystemRandom().randrange(1 << 32)))
    p.add_argument("--stops", type=int, default=12)
    p.add_argument("--rate", type=int, default=200, help="messages per second")
    p.add_argument("--out", type=Path, help="file for the result as JSON")
    p.add_argument("--keep", type=Path, help="directory for the record and its events; it must be empty or absent")
    given = p.parse_args()
    items = planned(random.Random(f"pause {given.seed}"), given.stops)
    with tempfile.TemporaryDirectory(prefix="why-") as folder:
        judged, fact = judge_run(run(given, items, Path(folder)))
        if given.keep:
            shutil.copytree(Path(folder) / "record", given.keep, dirs_exist_ok=True)
    print(f"seed {given.seed}: {fact['right']} of {fact['faults']} named right" + (f"; {fact['notes']}" if fact["notes"] else ""))
    print(matrix.markdown(matrix.summary(judged)))
    for fault, verdict in judged:
        print(f"  {fault.item.id} {fault.item.kind} {fault.item.size_ns / 1e6:.1f} ms, harm {fault.harm.ns / 1e6:.2f} ms: {verdict.role} "
              + ("named" if verdict.named else "right" if verdict.right else verdict.reason or "not named"))
    if given.out:
        given.out.write_text(json.dumps({"seed": given.seed, **fact, "items": [line(*pair) for pair in judged]}, indent=1) + "\n")
    few = fact["right"] < LEAST_SHARE * fact["faults"]
    return int(few or any(verdict.named for _, verdict in judged) or bool(fact["notes"]))


if __name__ == "__main__":
    sys.exit(main())
