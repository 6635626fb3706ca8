"""Runs Python programs of this directory in an emulated guest, whose console carries their output. `bench/counted` and
`bench/why_guest.py` use it."""
import os
import shlex
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
# Python of the system, which the guest gets. Another Python in PATH may have its files in many places.
PYTHON = sorted(Path("/usr/lib").glob("python3.*"))[-1]
BEGIN, END = "output: begin", "output: end"


def stripped(program, folder):
    """Makes a copy of a program without debug information, which would only fill the memory of the guest."""
    to = folder / program.name
    subprocess.run(["strip", "-o", to, program], check=True)
    return to


def build(tailbound, kernel, folder, files, modules=()):
    """Makes the kernel and the initramfs of a guest with Python, the programs of this directory, and `files`."""
    folder.mkdir(parents=True, exist_ok=True)
    # The files of Python without its test suites.
    parts = [p for p in PYTHON.iterdir() if p.name not in ("test", "lib2to3", "ensurepip", "idlelib", "pydoc_data")
             and not p.name.startswith("config-")]
    bench = [*(TOP / "bench").glob("*.py"), *(TOP / "bench/causes").glob("*.py"), TOP / "bench/counted"]
    words = [word for f in ["/usr/bin/python3", *parts, *bench, *files] for word in ("--with", str(f))]
    words += [word for module in modules for word in ("--module", module)]
    made = subprocess.run([tailbound, "guest", "build", "--kernel", kernel, "--out", folder, *words], capture_output=True, text=True)
    if made.returncode:
        sys.exit(f"no guest can be built: {made.stderr}")


def lines(folder, line, qemu, program, words, emulator=("qemu-system-x86_64",)):
    """Boots the guest in `folder` and runs a program of this directory in it; yields the output line by line. `line`: words of
    the kernel command line; `qemu`: arguments of QEMU; `emulator`: its command."""
    machine = subprocess.Popen(
        [*emulator, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-machine", "q35", *qemu,
         "-kernel", folder / "kernel", "-initrd", folder / "initramfs",
         "-append", f"console=ttyS0 quiet panic=-1 rootfstype=ramfs {line} tailbound.mode=shell",
         "-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    inside, code = False, None
    try:
        seen = b""
        while not seen.endswith(b"# "):   # the prompt; input before the prompt may be lost
            byte = machine.stdout.read(1)
            if not byte:
                sys.exit(f"the guest did not boot: {seen.decode(errors='replace')}")
            seen += byte
        run = shlex.join(["env", "PYTHONHOME=/usr", "python3", f"{TOP}/bench/{program}", *words])
        script = f"echo; echo '{BEGIN}'; {run}; code=$?; echo; echo '{END}' $code"
        machine.stdin.write(f"exec sh -c {shlex.quote(script)}\n".encode())
        machine.stdin.flush()
        for text in machine.stdout:
            text = text.decode(errors="replace").rstrip()
            if text == BEGIN:
                inside = True
            elif text.startswith(END):
                code = int(text[len(END):])
            elif inside and code is None:
                yield text
            elif os.environ.get("GUEST_CONSOLE"):
                print(f"console: {text}", file=sys.stderr)
        machine.wait()
    finally:
        machine.kill()
        machine.wait()
    if code != 0:
        sys.exit(f"the program in the guest failed ({code}); GUEST_CONSOLE=1 shows the console")
