#!/usr/bin/env python3
"""What `tailbound watch` costs, and whether it misses packets: samples of many topics over the loopback interface, alternately
with and without a capture.

    bench/watch.py [--topics 200] [--rate 20000] [--seconds 10] [--pairs 5]     as root; builds the release binaries

Runs in a network namespace of its own. CPU time is user and system time: of the process that sends and receives, and of the capture.
"""

import argparse
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILT = os.environ.get("TAILBOUND_BUILT", os.path.join(TOP, "target/release"))


def samples(options):
    """Sends and receives the samples; returns its numbers of sent and received samples and its CPU time in s."""
    numbers = [3, options.topics, options.rate, options.seconds]
    printed = subprocess.run([BUILT + "/many_topics", *map(str, numbers)], check=True, capture_output=True, text=True).stdout
    words = printed.split()
    return int(words[0]), int(words[2]), int(words[6]) / 1e9


def watched(options):
    """The same with a capture; also returns what the capture found, and its CPU time in s."""
    command = [BUILT + "/tailbound", "watch", "--for", "10min", "--format", "json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    capture = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert capture.stderr.readline().startswith("watching"), "the capture did not begin"
    time.sleep(0.2)
    sent, received, cpu_s = samples(options)
    time.sleep(0.5)
    capture.send_signal(signal.SIGINT)
    out, _ = capture.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    all_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return sent, received, cpu_s, json.loads(out), all_s - cpu_s


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, default in [("topics", 200), ("rate", 20_000), ("seconds", 10), ("pairs", 5)]:
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        if "TAILBOUND_BUILT" not in os.environ:
            build = ["cargo", "build", "--release", "--locked", "-p", "tailbound", "-p", "tailbound-bench", "--bins"]
            subprocess.run(build, cwd=TOP, check=True)
        return subprocess.run(["unshare", "--net", sys.executable, __file__, *sys.argv[1:], "--inside"], check=False).returncode
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    added, captures, missed, wrong = [], [], 0, 0
    for pair in range(options.pairs):
        runs = {}
        for with_capture in [pair % 2 == 0, pair % 2 == 1]:
            runs[with_capture] = watched(options) if with_capture else samples(options)
        sent, received, cpu_s, found, capture_s = runs[True]
        writers = [writer for topic in found["topics"] for writer in topic["writers"]]
        counted = sum(writer["samples"] for writer in writers)
        missed += found["not_copied"]
        wrong += abs(counted - sent) + abs(received - sent) + sum(writer["protocol"]["lost"] for writer in writers)
        added.append((cpu_s - runs[False][2]) / options.seconds * 100)
        captures.append(capture_s / options.seconds * 100)
        print(f"pair {pair + 1}: {sent} sent, {received} received, {counted} seen, {found['not_copied']} packets missed; capture "
              f"{captures[-1]:.1f} % of a CPU, sender and receiver {added[-1]:+.1f} %", flush=True)
    print(f"{options.topics} topics, {options.rate} samples/s: capture {statistics.median(captures):.1f} % of a CPU, sender and "
          f"receiver {statistics.median(added):+.1f} % of a CPU (medians of {options.pairs} pairs); {missed} packets missed, "
          f"{wrong} samples counted wrong")
    return 1 if wrong or missed else 0


if __name__ == "__main__":
    sys.exit(main())
