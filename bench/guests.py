#!/usr/bin/env python3
"""Measures the time from the start of `run` until the agents of two guests answer: QEMU, kernel, first file system, streams.

    bench/guests.py PROGRAM KERNEL.deb [RUNS]

PROGRAM is a release build. KERNEL.deb is a kernel package, as `dev/setup vm` downloads it. The first run fills the cache for
later runs and is not counted. The machine must be otherwise quiet. The goal is 10 s (median) for emulated guests.
"""
import os, statistics, subprocess, sys, tempfile, time

program, kernel = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
runs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
study = f"""study: guests
question: How soon do two guests answer?
measure: {{ ping-pong: {{ slots: 20, warm_up: 0 }} }}
rate: 100 Hz
driver: udp
place: {{ vm: {{ kernel: {{ package: {kernel} }}, accelerator: emulated, vcpus: 1 }} }}
path: bridge
"""


def one(folder, number):
    """Seconds from the start until the lab is ready (both agents answer, the path was checked), and until the run is over."""
    record = os.path.join(folder, f"record-{number}")
    begin = time.monotonic()
    child = subprocess.Popen([program, "run", "study.yaml", "--out", record], cwd=folder, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True)
    ready = None
    for line in child.stderr:
        if line.startswith("trial 1/") and ready is None:
            ready = time.monotonic() - begin
    if child.wait() != 0 or ready is None:
        sys.exit(f"the run failed with {child.returncode}")
    return ready, time.monotonic() - begin


with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "study.yaml"), "w") as file:
        file.write(study)
    one(folder, 0)
    times = [one(folder, n + 1) for n in range(runs)]
for what, column in (("both agents answer and the path is checked", 0), ("the run is over", 1)):
    values = sorted(t[column] for t in times)
    print(f"{what}: {statistics.median(values):.2f} s (median of {runs}; {values[0]:.2f} to {values[-1]:.2f})")
