#!/usr/bin/env python3
"""Kills `tailbound tune` with SIGKILL at random moments, and looks at what is left on the host.

    bench/tune_kill.py                 ten kills; a new seed is drawn and printed

The trials of the run change a setting of this host (vm.swappiness). After each kill the setting must be as before and nothing of the
run may exist: after at most 40 s by the watchdog, or, if the watchdog was killed too, after `tailbound lab cleanup`. `tune resume` then
goes on; after the last kill it must end with a receipt, and no pairs may have been measured twice. Needs root.
"""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
SETTING = Path("/proc/sys/vm/swappiness")
STUDY = """study: kill
measure: { ping-pong: { duration: 1s, warm_up: 50, receive: block } }
rate: 1 kHz
path: veth
place: netns
driver: udp
quiet: off
"""
# Who is killed: `tune` alone, with the process of the trials, or with the watchdog as well.
MODES = ("tune", "group", "all")


def processes():
    """Process id, parent and command line of all processes of `tailbound tune`."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                parent = int((entry / "stat").read_text().rsplit(") ", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            found[int(entry.name)] = (parent, b" ".join(words).decode(errors="replace"))
    return found


def kill(process, mode):
    """Kills `tune`; returns the ids of the processes that were killed."""
    victims = [process.pid]
    children = [(pid, line) for pid, (parent, line) in processes().items() if parent == process.pid]
    victims += [pid for pid, line in children if "watchdog" not in line and mode != "tune"]
    victims += [pid for pid, line in children if "watchdog" in line and mode == "all"]
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    process.wait()
    return victims


def left(binary, before):
    """What is left of a killed run, as text; empty = nothing."""
    listed = subprocess.run([binary, "lab", "list", "--format", "json"], capture_output=True, text=True).stdout
    entries = json.loads(listed)
    now = SETTING.read_text()
    return ("" if not any(entries.values()) else listed.strip()) + ("" if now == before else f" vm.swappiness is {now.strip()}")


def wait_until_clean(binary, before, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until and left(binary, before):
        time.sleep(0.5)
    return left(binary, before)


def one_kill(binary, command, mode, delay_s, before):
    """Starts `tune`, kills it after this time, and returns a sentence if something is left."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        process.wait(timeout=delay_s)
        return f"`tune` ended by itself with exit code {process.returncode}"
    except subprocess.TimeoutExpired:
        pass
    changed = SETTING.read_text() != before
    killed = kill(process, mode)
    if mode == "all":
        subprocess.run([binary, "lab", "cleanup"], capture_output=True)
    rest = wait_until_clean(binary, before, 40)
    print(f"  {mode} after {delay_s:.1f} s ({len(killed)} processes, setting {'changed' if changed else 'as before'}): {rest or 'clean'}", flush=True)
    return rest and f"after a kill of {mode}: {rest}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", type=Path, default=TOP / "target/release/tailbound")
    p.add_argument("--kills", type=int, default=10)
    p.add_argument("--seed", default=str(random.SystemRandom().randrange(1 << 32)))
    given = p.parse_args()
    rng, binary, before = random.Random(given.seed), given.binary.resolve(), SETTING.read_text()
    wanted = "10" if before.strip() != "10" else "20"
    print(f"seed {given.seed}")
    with tempfile.TemporaryDirectory(prefix="tailbound-kill-") as folder:
        study, out = Path(folder) / "kill.yaml", Path(folder) / "tuned"
        study.write_text(STUDY)
        begin = [binary, "tune", study, "--for", "p50", "--yes", "--beside", "--out", out, "--candidates", "1",
                 "--try", f"host.sysctl.vm.swappiness={wanted}", "--try", "driver.udp.sndbuf=8388608"]
        faults, pairs = [], out / "pairs.jsonl"
        for number in range(given.kills):
            command = [binary, "tune", "resume", out] if (out / "tune.json").exists() else begin
            known = pairs.read_text() if pairs.exists() else ""
            faults += filter(None, [one_kill(binary, command, MODES[number % 3], rng.uniform(0.5, 20), before)])
            now = pairs.read_text() if pairs.exists() else ""
            if not now.startswith(known[:known.rfind("\n") + 1]):
                faults.append("pairs that were measured are gone")
        ended = subprocess.run([binary, "tune", "resume", out], capture_output=True, text=True)
        stages = [(line["stage"], line["first"]) for line in map(json.loads, pairs.read_text().splitlines())]
        if len({str(stage) for stage in stages}) != len(stages):
            faults.append("pairs were measured twice")
        if not (out / "receipt.json").exists():
            faults.append(f"no receipt: exit code {ended.returncode}: {ended.stderr[-400:]}")
        faults += filter(None, [left(binary, before)])
    print("\n".join(faults) or f"right: {given.kills} kills left nothing, and the run went on each time")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
