"""What is prepared once, for all runs: the helper program, control groups, bystanders, and what this machine can do."""
import os
import platform
import shutil
import socket
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from . import groups, network
from .kinds import BRIDGE, KINDS, LOOPBACK, REAL_TIME, SPARE, STEERED, SWITCH

HERE = Path(__file__).parent
CONTROLLERS = ("cpu", "freezer")
# A build of all targets makes it.
BASE_DRIVER = "libtailbound_driver_udp_so.so"
# What `build` compiles.
PLANT, HELD_DRIVER = "plant", "libtailbound_driver_held.so"
# Records by BPF; without it, perf events are recorded.
TRACER = "libtailbound_tracer.so"
# More pages than the driver `held` can read from a disk in a run.
PAGES_BYTES = 64 << 20


def build(folder):
    """Compiles the helper program and the driver `held` into a directory."""
    cc = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
    subprocess.run([*cc, "-o", folder / PLANT, HERE / "plant.c"], check=True)
    subprocess.run([*cc, "-shared", "-fPIC", "-I", HERE.parent.parent / "include", "-o", folder / HELD_DRIVER, HERE / "held.c"], check=True)


def add_held(built, program):
    """Adds the driver `held` beside the copy of Tailbound, and the directory of its orders; it needs the driver `udp` as a shared object."""
    orders = program.parent / "orders"
    orders.mkdir()
    if (program.parent / BASE_DRIVER).exists():
        for end in ("ping", "pong"):
            with open(orders / f"pages-tb-{end}", "wb") as pages:
                pages.write(os.urandom(PAGES_BYTES))
                os.fsync(pages.fileno())
        shutil.copy(built / HELD_DRIVER, program.parent)
    return orders


def start_plant(program, group=None):
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if group:
        group.join(process.pid)
    return process


@dataclass
class Stage:
    """Everything that outlives a run. `user`: numeric id of the user as which Tailbound runs; None = this user; `rate_hz`: messages per second;
    `built`: directory with what `build` compiles; None = it is compiled now; `own_machine`: whether settings of the whole machine may
    change, because it is a guest that ends with this program; `busy`: whether compilers keep all CPUs busy."""
    binary: Path
    folder: Path
    user: int | None = None
    rate_hz: int = 500
    built: Path | None = None
    own_machine: bool = False
    busy: bool = False
    plant: Path = None
    ends: dict = field(default_factory=dict)
    hogs: dict = field(default_factory=dict)
    bystanders: groups.Group = None
    pages: groups.Group = None
    bystander: subprocess.Popen = None
    other_socket: socket.socket = None
    program: Path = None
    orders: Path = None
    frame_ns: int = 0

    @property
    def period_ns(self):
        return 1_000_000_000 // self.rate_hz

    def __enter__(self):
        self.undo = ExitStack()
        try:
            return self.set_up()
        except BaseException:
            self.undo.close()
            raise

    def __exit__(self, *_):
        self.undo.close()

    def group(self, name, controllers):
        group = groups.Group(f"why-{os.getpid()}-{name}", controllers)
        self.undo.callback(group.close)
        return group

    def process(self, process):
        self.undo.callback(process.wait)
        self.undo.callback(process.kill)
        return process

    def set_up(self):
        self.folder.chmod(0o755)
        if not self.built:
            self.built = self.folder / "built"
            self.built.mkdir()
            build(self.built)
        self.plant = self.built / PLANT
        for end in ("ping", "pong"):
            self.ends[end] = self.group(end, CONTROLLERS)
        # Several groups: a single one would have to let an end run after each of its time slices, whatever its share.
        for number in range(3):
            self.hogs[f"hog {number}"] = self.group(f"hog-{number}", ("cpu",))
            self.hogs[f"hog {number}"].prefer()
        self.bystanders = self.group("other", CONTROLLERS)
        self.pages = self.group("pages", ("memory",))
        self.bystander = self.process(start_plant(self.plant, self.bystanders))
        self.program = self.copy_program()
        self.orders = add_held(self.built, self.program)
        self.frame_ns = network.frame_ns(self.plant, self.folder)
        # A program whose pages belong to a group of their own: it has read a file, and waits for its input to end.
        other = self.folder / "pages"
        other.write_bytes(os.urandom(1 << 20))
        self.process(subprocess.Popen(["sh", "-c", 'cat "$0" >/dev/null; read line', other], stdin=subprocess.PIPE,
                                      preexec_fn=lambda: self.pages.join(os.getpid())))
        self.other_socket = self.undo.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.other_socket.bind(("127.0.0.1", 0))
        return self

    def copy_program(self):
        """A copy of Tailbound without debug information, beside which the driver `held` has its place."""
        folder = self.folder / "program"
        folder.mkdir()
        copy = folder / "tailbound"
        if shutil.which("strip"):
            subprocess.run(["strip", "-o", copy, self.binary], check=True)
        else:
            shutil.copy(self.binary, copy)
        for library in self.driver_files():
            shutil.copy(library, folder)
        for file in folder.iterdir():
            file.chmod(0o755)
        return copy

    def group_of(self, place):
        """The group of a helper's place, or None."""
        return {**self.ends, **self.hogs, "other": self.bystanders}.get(place)

    def driver_files(self):
        top = self.binary.parent
        folders = [top, top.parent / "lib/tailbound/drivers", *map(Path, os.environ.get("TAILBOUND_DRIVER_PATH", "").split(":"))]
        found = {path.name: path for folder in reversed(folders) if folder.is_dir() for path in folder.glob("libtailbound_driver_*.so")}
        drivers = [path for name, path in found.items() if not name.endswith("_so.so") or name == BASE_DRIVER]
        return drivers + [path for path in (folder / TRACER for folder in folders) if path.exists()][:1]

    def drivers(self):
        """Drivers that this build can use."""
        out = subprocess.run([self.program, "driver", "list"], capture_output=True, text=True).stdout
        return {line.split()[0] for line in out.splitlines() if line and not line[0].isspace()}

    def possible(self):
        """Layouts in which each kind can be planted on this machine, and the reason for each kind that cannot."""
        layouts = {LOOPBACK, BRIDGE, SPARE} | ({SWITCH} if shutil.which("ovs-vswitchd") else set())
        if self.ends["ping"].file("cpu", "cpu.rt_runtime_us") and self.user is None:
            layouts.add(REAL_TIME)
        if self.own_machine and "PREEMPT_RT" in platform.version():
            layouts.add(STEERED)
        lacks = {"frozen": not self.ends["ping"].freezer(0), "cpu_quota": not self.ends["ping"].quota(),
                 "bystander_pages": not self.pages.reclaim()[0]}
        lacks |= {"freeze_between": lacks["frozen"], "bystander_frozen": lacks["frozen"],
                  "bystander_quota": lacks["cpu_quota"]}
        found = {name: {layout for layout in kind.layouts if layout in layouts} for name, kind in KINDS.items() if not lacks.get(name)}
        return {name: there for name, there in found.items() if there}
