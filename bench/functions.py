"""Instructions by task and function in the guest of bench/counted, counted by the plugin of QEMU bench/functions.c.

The plugin counts each block of instructions for the task that executes it, in the kernel and in programs. The guest prints
the symbols of its kernel and the files that its programs map, without which an address has no name.
"""
import bisect, collections, re, subprocess, threading, time
from pathlib import Path

LINE = "nokaslr norandmaps"   # so that addresses repeat
PROGRAMS = ("tailbound", "sockperf", "iperf3", "ddsperf", "fastdds-flow", "fastdds-pingpon")
DATA = ("current_task", "__per_cpu_offset")
# Each received message calls one of them once.
RECEIVES = ("udp_recvmsg", "udpv6_recvmsg", "unix_dgram_recvmsg")


def print_symbols():
    """In the guest: prints the symbols of the kernel that have instructions, and the variables that the plugin needs."""
    for line in open("/proc/kallsyms"):
        address, kind, name, *_ = line.split()
        if kind in "tTwW" or name in DATA:
            print("symbol", address, name)


def print_maps():
    """In the guest: prints the files that the programs map, from another thread, while they run."""
    def watch():
        seen = set()
        while True:
            time.sleep(0.02)
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    name, lines = (process / "comm").read_text().strip(), (process / "maps").read_text().splitlines()
                except OSError:
                    continue   # the process has ended
                for words in map(str.split, lines):
                    if name in PROGRAMS and "x" in words[1] and (map_ := (name, words[0], words[2], words[-1])) not in seen:
                        seen.add(map_)
                        print("map", *map_, flush=True)
    threading.Thread(target=watch, daemon=True).start()


class Functions:
    """What is needed for the names of addresses, and the arguments of QEMU."""

    def __init__(self, lines, folder):
        known = [line.split()[1:] for line in lines if line.startswith("symbol ")]
        self.kernel = sorted((int(address, 16), name) for address, name in known if name not in DATA)
        data = {name: address for address, name in known if name in DATA}
        at = next(i for i, (_, name) in enumerate(self.kernel) if name == "__switch_to")
        begin, size = self.kernel[at][0], self.kernel[at + 1][0] - self.kernel[at][0]
        self.maps, self.folder, self.tables = collections.defaultdict(list), folder, {}
        self.ram, self.counts, plugin = Path("/dev/shm") / f"counted-{id(self)}", folder / "functions.counts", folder / "functions.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-O2", "-Wall", "-fPIC", "-shared", "-o", plugin, source], check=True)
        self.plugin = f"{plugin},ram={self.ram},switch={begin:x},size={size},current={data['current_task']},offsets={data['__per_cpu_offset']},out={self.counts}"

    def qemu(self, mebibytes):
        return ["-object", f"memory-backend-file,id=ram,size={mebibytes}M,mem-path={self.ram},share=on", "-machine", "memory-backend=ram", "-plugin", self.plugin]

    def take(self, line):
        """Remembers a line of `print_maps`; returns false for every other line."""
        if not line.startswith("map "):
            return False
        _, program, addresses, offset, path = line.split()
        begin, end = (int(a, 16) for a in addresses.split("-"))
        self.maps[program].append((begin, end, int(offset, 16), path))
        return True

    def table(self, path, built):
        """Symbols of a file, and the distance between addresses and offsets in its code."""
        name = Path(path).name
        places = [built / name, *Path("/usr/bin").glob(name), *Path("/usr/lib").glob(f"*/{name}"), *Path("/opt").glob(f"*/lib/{name}"),
                  *(built.parent / "bench").rglob(name)]
        file = next((p for p in places if p.exists()), None)
        if path.startswith("/") and file and path not in self.tables:
            text = lambda *command: subprocess.run([*command, file], capture_output=True, text=True).stdout
            found = re.findall(r"^([0-9a-f]+) [tTwWi] (.*)$", text("nm", "-C") or text("nm", "-C", "-D"), re.M)
            code = next(w for w in map(str.split, text("readelf", "-lW").splitlines()) if w and w[0] == "LOAD" and "E" in w[6:-1])
            self.tables[path] = sorted((int(a, 16), n) for a, n in found), int(code[2], 16) - int(code[1], 16)
        return self.tables.get(path)

    def name(self, program, address, built):
        if address >> 63:
            return self.kernel[bisect.bisect_right(self.kernel, (address, "~")) - 1][1]
        for begin, end, offset, path in self.maps[program]:
            if begin <= address < end:
                symbols, distance = self.table(path, built) or ([], 0)
                at = bisect.bisect_right(symbols, (address - begin + offset + distance, "~")) - 1
                return f"{Path(path).name}: {symbols[at][1] if at >= 0 else hex(address)}"
        return f"{program}: unknown"

    def report(self, built):
        """Yields the functions of each task that has received messages, with their instructions per received message."""
        tasks, counted = {}, collections.defaultdict(collections.Counter)
        entered = collections.Counter()
        begins = {address for address, name in self.kernel if name in RECEIVES}
        for line in self.counts.read_text(errors="replace").splitlines():
            words = line.split()
            if words[0] == "task":
                tasks[words[1]] = " ".join(words[2:])
                continue
            task, address, length, times = words[0], int(words[1], 16), int(words[2]), int(words[3])
            counted[task][address] += length * times
            entered[task] += times * (address in begins)
        last = None
        for task, addresses in sorted(counted.items(), key=lambda item: int(item[0])):
            # A thread with a name of its own belongs to the program before it.
            last = program = tasks[task] if tasks[task] in self.maps else last
            if entered[task] < 1000:
                continue
            functions = collections.Counter()
            for address, n in addresses.items():
                functions[self.name(program, address, built), "kernel" if address >> 63 else "program"] += n / entered[task]
            parts = {part: sum(n for (_, p), n in functions.items() if p == part) for part in ("kernel", "program")}
            yield f"-- {tasks[task]} ({program}): {entered[task]:,} received, instructions per message: kernel {parts['kernel']:,.0f}, program {parts['program']:,.0f}"
            for (name, part), n in functions.most_common():
                if n >= 1:
                    yield f"{n:9,.1f}  {part:7}  {name}"
