"""Network faults: `tc` kept ready in a namespace, and a pair of interfaces whose frames are expensive to receive."""
import os
import subprocess
import tempfile
import time
from pathlib import Path

# Classic BPF: tc accepts fewer than 2048 instructions in one filter. A division is the slowest one.
INSTRUCTIONS, FILTERS = 1900, 24
# With the overhead, each packet costs 60 s of the slow rate, and the bucket holds one packet.
FAST, BLOCKED = "tbf rate 40gbit burst 100k limit 50m", "tbf rate 8kbit burst 61000 overhead 60000 limit 50m"
# In a guest: each packet is delayed by the length of the fault.
NETEM = "netem limit 100000"
DROP = "bpf da bytecode '1,6 0 0 2'"                      # TC_ACT_SHOT


STEERING = Path("/sys/class/net/lo/queues/rx-0/rps_cpus")


def steer(cpus):
    """Lets other CPUs receive the packets of the loopback interface (RPS). `cpus`: a mask. On a real-time kernel, the thread
    ksoftirqd of the other CPU receives them. Returns the mask before."""
    before = STEERING.read_text()
    STEERING.write_text(cpus)
    return before


class Tc:
    """`tc` in a network namespace, waiting for commands at a named pipe, so that a fault needs no new process. `netem`: whether netem
    slows an interface down, and not a token bucket."""

    def __init__(self, namespace, folder, netem=False):
        self.netem, self.namespace, self.pipe = netem, namespace, Path(tempfile.mkdtemp(dir=folder)) / "tc"
        os.mkfifo(self.pipe)
        # The reading end is opened first and without waiting for a writer; this program is a writer until `close`.
        reading = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.end = os.open(self.pipe, os.O_WRONLY | os.O_CLOEXEC)
        os.set_blocking(reading, True)
        self.process = subprocess.Popen(["nsenter", f"--net={namespace}", "tc", "-force", "-batch", "-"], stdin=reading,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        os.close(reading)

    def now(self, *words):
        subprocess.run(["nsenter", f"--net={self.namespace}", "tc", *words], check=True)

    def prepare(self, interface):
        """A queue that lets everything pass, and a place for filters."""
        self.now("qdisc", "add", "dev", interface, "root", *(NETEM if self.netem else FAST).split())
        self.now("qdisc", "add", "dev", interface, "clsact")

    def block(self, interface, ns):
        change = f"qdisc change dev {interface} root"
        if self.netem:
            return f"{change} {NETEM} delay {ns // 1000}us\n", f"{change} {NETEM} delay 0us\n"
        return f"{change} {BLOCKED}\n", f"{change} {FAST}\n"

    def drop(self, interface):
        at = f"dev {interface} egress prio 1"
        return f"filter add {at} protocol all {DROP}\n", f"filter del {at}\n"

    def close(self):
        """Lets `tc` carry out what was written, and end. Returns what it complained about."""
        os.close(self.end)
        try:
            return self.process.communicate(timeout=10)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "tc did not end: " + self.process.communicate()[1]


def expensive_filter(path):
    code = ["0 0 0 1000000007"] + ["52 0 0 1"] * (INSTRUCTIONS - 2) + ["6 0 0 0"]
    path.write_text(f"{len(code)}," + ",".join(code))


# A pair of interfaces for each CPU: frames from sN arrive at rN, whose soft interrupt runs on CPU N (RPS). Each frame passes
# the filters, which take long and never match. oN is a path of its own with a queue, which no measured message uses.
SET_UP = """set -e
mount -t sysfs sysfs /sys
for cpu in 0 1; do
  ip link add s$cpu type veth peer name r$cpu
  ip link set s$cpu up; ip link set r$cpu up
  printf '%x' $((1 << cpu)) > /sys/class/net/r$cpu/queues/rx-0/rps_cpus
  tc qdisc add dev r$cpu clsact
  n=1
  while [ $n -le "$FILTERS" ]; do tc filter add dev r$cpu ingress prio $n protocol all bpf bytecode-file "$CODE"; n=$((n + 1)); done
done
ip link add o0 type veth peer name o1
ip link set o0 up; ip link set o1 up
echo ready >&2
exec "$PLANT"
"""


def flood_namespace(plant, folder):
    """Starts `plant` in a network namespace with the expensive interfaces."""
    code = folder / "filter"
    expensive_filter(code)
    environment = {**os.environ, "PLANT": str(plant), "CODE": str(code), "FILTERS": str(FILTERS)}
    process = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", SET_UP], stdin=subprocess.PIPE, env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while line := process.stderr.readline():
        if line == "ready\n":
            return process
    raise RuntimeError("the namespace of the flood cannot be set up: " + process.communicate()[1])


def frame_ns(plant, folder, frames=60):
    """Time for which one frame of the flood keeps the receiving CPU, on this machine; the smallest of several floods."""
    process = flood_namespace(plant, folder)
    begin = time.monotonic_ns() + 20_000_000
    commands = [f"{n}\tflood\t{begin + n * 40_000_000}\t0\ts1\tr1\t{frames}\t0\n" for n in range(4)]
    out, error = process.communicate("".join(commands), timeout=30)
    times = [int(end) - int(start) for _, start, end, *_ in (line.split("\t") for line in out.splitlines())]
    if not times or not min(times):
        raise RuntimeError(f"the flood could not be measured: {out}{error}")
    return min(times) // frames
