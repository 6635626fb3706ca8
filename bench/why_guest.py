#!/usr/bin/env python3
"""Plants faults as bench/why.py does, in an emulated guest with another kernel than the one of this machine.

    bench/why_guest.py --kernel target/guests/rt.deb -- --faults 60 --decoys 30
    bench/why_guest.py --kernel target/guests/cloud.deb --paranoid 3 -- --user 65534 --nothing-false

The words after `--` are options of bench/why.py. Needs a C compiler, QEMU and a kernel package (`dev/setup vm` downloads two). The
guest has two CPUs and no disk, so that no page fault waits for one. It has neither Open vSwitch nor a second compiler.
"""
import argparse
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import python_guest
from causes.stage import TRACER, build

TOP = python_guest.TOP
MODULES = ("sch_netem", "cls_bpf")
PROGRAMS = ("ip", "tc", "nsenter", "unshare")
# Groups of trace points that Tailbound records.
TRACE_POINTS = ("sched", "irq", "irq_vectors", "exceptions", "net", "skb", "napi", "sock")


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", type=Path, default=TOP / "target/debug/tailbound")
    p.add_argument("--kernel", type=Path, default=TOP / "target/guests/rt.deb")
    p.add_argument("--qemu", type=Path, help="directory of an unpacked QEMU, for example target/qemu, in place of the installed one")
    p.add_argument("--paranoid", type=int, help="kernel.perf_event_paranoid in the guest")
    p.add_argument("--memory", default="4G", help="memory of the guest")
    p.add_argument("--out", type=Path, help="directory for what bench/why.py writes: result.json, result.md and, with --keep, the records")
    p.add_argument("--inside", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    p.add_argument("words", nargs="*", help="options of bench/why.py")
    return p.parse_args()


def keep_trace_points_on():
    """Connects each trace point to two buffers that record nothing.

    Whoever is the first or second to connect to a trace point makes the kernel patch its own code. QEMU 7.2, which emulates two
    CPUs by two threads, can then hang (docs/src/guests.md). Later programs only change a list.
    """
    for number in range(2):
        buffer = Path(f"/sys/kernel/tracing/instances/why-{number}")
        buffer.mkdir()
        (buffer / "tracing_on").write_text("0")
        (buffer / "buffer_size_kb").write_text("4")
        for group in TRACE_POINTS:
            if (enable := buffer / "events" / group / "enable").exists():
                enable.write_text("1")


def inside(paranoid, libraries, *words):
    """Runs in the guest: prepares it, plants the faults, and sends the files that why.py wrote. `libraries`: directories of the drivers and of the tracer, with colons."""
    Path("/sys/fs/cgroup/cgroup.subtree_control").write_text("+cpu +memory")
    keep_trace_points_on()
    if paranoid != "-":
        Path("/proc/sys/kernel/perf_event_paranoid").write_text(paranoid)
    out = Path("/tmp/out")
    command = [sys.executable, TOP / "bench/why.py", "--binary", "/bin/tailbound", "--out", out, *words]
    status = subprocess.run(command, env={**os.environ, "TAILBOUND_DRIVER_PATH": libraries}).returncode
    if out.exists():
        with open(next(Path("/dev").glob("vport*")), "wb") as port, tarfile.open(fileobj=port, mode="w|gz") as archive:
            archive.add(out, ".")
    return status


def emulator(unpacked):
    """Command of QEMU. An unpacked one finds its own firmware, and takes the BIOS of the installed one."""
    if not unpacked:
        return ["qemu-system-x86_64"]
    return [unpacked / "usr/bin/qemu-system-x86_64", "-L", unpacked / "usr/share/qemu", "-L", "/usr/share/seabios"]


def main():
    given = options()
    if given.inside:
        return inside(*given.inside)
    # The guest must not outlive this program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench/why_guest.py was asked to end"))
    folder = TOP / "target/why-guest"
    built = folder / "built"
    built.mkdir(parents=True, exist_ok=True)
    build(built)
    libraries = [given.binary.absolute().parent, given.binary.absolute().parent.parent / "lib/tailbound/drivers"]
    files = [file for folder in libraries for file in [*folder.glob("libtailbound_driver_*.so"), folder / TRACER]]
    python_guest.build(given.binary, given.kernel, folder, [*PROGRAMS, *built.iterdir(), *filter(Path.exists, files)], MODULES)
    result = folder / "result.tar.gz"
    result.unlink(missing_ok=True)
    qemu = ["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", given.memory, "-device", "virtio-serial-pci",
            "-chardev", f"file,id=result,path={result}", "-device", "virtserialport,chardev=result,name=result"]
    words = ["--inside", "-" if given.paranoid is None else str(given.paranoid), ":".join(map(str, libraries)), "--own-machine", "--built", built, *given.words]
    try:
        for line in python_guest.lines(folder, "tsc=reliable no_timer_check tailbound.name=why", qemu, "why_guest.py", list(map(str, words)), emulator(given.qemu)):
            print(line, flush=True)
    finally:
        if given.out and result.exists() and result.stat().st_size:
            with tarfile.open(result) as archive:
                archive.extractall(given.out, filter="data")
    return 0


if __name__ == "__main__":
    sys.exit(main())
