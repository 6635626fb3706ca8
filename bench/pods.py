#!/usr/bin/env python3
"""Measures the time that `run` takes until the first slot of a condition whose ends are pods, on a warm cluster.

    KUBECONFIG=... bench/pods.py TAILBOUND [REPEATS]

The nodes must have the image of this release. The program prints the median and all values, in seconds, from the start of
`run` to t0 of its trial (the nodes run on this machine and have its clock), and to the end of `run`.
"""
import json, pathlib, statistics, subprocess, sys, tempfile, time

STUDY = """\
study: first-slot
question: How long until the first slot?
measure: { ping-pong: { duration: 1 s } }
rate: 500 Hz
payload: 64 B
driver: cyclonedds
place: { pod: { node: other, pull: never, network: NETWORK } }
"""


def once(program, network, directory):
    study = directory / "study.yaml"
    study.write_text(STUDY.replace("NETWORK", network))
    record = directory / "record"
    began = time.monotonic_ns()
    subprocess.run([program, "run", study, "--out", record, "--quiet"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ended = time.monotonic_ns()
    trial = json.loads((record / "manifest.json").read_text())["trials"][0]
    return (trial["t0_ns"] - began) / 1e9, (ended - began) / 1e9


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    rounds = {"host": [], "pod": []}
    # The networks take turns; the first run of each network is a warm-up and is not counted.
    for number in range(repeats + 1):
        for network, taken in rounds.items():
            with tempfile.TemporaryDirectory() as directory:
                value = once(program, network, pathlib.Path(directory))
            if number:
                taken.append(value)
    for network, taken in rounds.items():
        first, whole = ([round(v[i], 2) for v in taken] for i in (0, 1))
        print(f"{network} network: first slot after {statistics.median(first):.2f} s {first}, finished after {statistics.median(whole):.2f} s {whole}")


main()
