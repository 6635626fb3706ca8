"""Control groups of the ends and of bystanders, in version 1 (one hierarchy per controller) or 2.

A machine can have both at once: version 1 controllers, and an empty version 2 hierarchy, which still has a freezer.
"""
import sys
import time
from pathlib import Path

TOP = Path("/sys/fs/cgroup")
# Real-time CPU time of a group in each period, us: both ends together stay below the 95 % of the machine.
REAL_TIME_PERIOD_US, REAL_TIME_US, FEW_US = 10_000, 4_000, 100


def unified():
    """The version 2 hierarchy, or None."""
    return next((p for p in (TOP, TOP / "unified") if (p / "cgroup.controllers").exists()), None)


def old(controller):
    """The version 1 hierarchy of a controller, or None."""
    top = TOP / controller
    return top if (top / "cgroup.procs").exists() and not (top / "cgroup.controllers").exists() else None


class Group:
    """One group with the same name in each hierarchy that it needs; removed by `close`."""

    def __init__(self, name, controllers):
        self.folders, self.real_time = {}, None
        try:
            for controller in controllers:
                top = old(controller) or (unified() if self.in_unified(controller) else None)
                if top:
                    self.add(controller, top / name)
            if "freezer" in controllers and unified():
                self.add("freezer 2", unified() / name)
        except OSError:
            self.close()
            raise

    @staticmethod
    def in_unified(controller):
        top = unified()
        return top and (controller == "freezer" or controller in (top / "cgroup.subtree_control").read_text().split())

    def add(self, controller, folder):
        folder.mkdir(exist_ok=True)
        self.folders[controller] = folder

    def join(self, pid, without=None):
        """`without`: a controller of version 1 whose group is not joined."""
        for folder in {folder for controller, folder in self.folders.items() if controller != without}:
            (folder / "cgroup.procs").write_text(str(pid))

    def close(self):
        """Undoes everything and removes the group, whose processes have ended or are about to end."""
        self.undo()
        for folder in set(self.folders.values()):
            for last in [False] * 50 + [True]:
                try:
                    folder.rmdir()
                    break
                except OSError as error:
                    if last:
                        print(f"the control group {folder} remains: {error}", file=sys.stderr)
                    time.sleep(0.02)

    def file(self, controller, *names):
        """The first of the files that exists, or None."""
        folder = self.folders.get(controller)
        return next((folder / name for name in names if folder and (folder / name).exists()), None)

    def freezer(self, second):
        """File and the two values by which the group is frozen and thawed, for version 1 or 2 (`second`)."""
        files = [(self.file("freezer", "freezer.state"), "FROZEN", "THAWED"),
                 (self.file("freezer 2", "cgroup.freeze"), "1", "0")]
        present = [entry for entry in files if entry[0]]
        return present[second % len(present)] if present else None

    def quota(self):
        """File and the two values by which the group gets 1 ms of CPU time in a second, and no limit."""
        found = self.file("cpu", "cpu.cfs_quota_us")
        if found:
            self.file("cpu", "cpu.cfs_period_us").write_text("1000000")
            return found, "1000", "-1"
        found = self.file("cpu", "cpu.max")
        return (found, "1000 1000000", "max 1000000") if found else None

    def prefer(self):
        """Gives the group the largest share of CPU time that the kernel permits."""
        self.share("262144", "10000")

    def share(self, shares, weight):
        """`shares`: the share for version 1; `weight`: for version 2."""
        if found := self.file("cpu", "cpu.shares"):
            found.write_text(shares)
        elif found := self.file("cpu", "cpu.weight"):
            found.write_text(weight)

    def real_time_limit(self):
        """File and the two values by which the group gets next to no real-time CPU time, and enough. Without any, version 1
        refuses real-time threads in the group."""
        found = self.file("cpu", "cpu.rt_runtime_us")
        if found and not self.real_time:
            self.file("cpu", "cpu.rt_period_us").write_text(str(REAL_TIME_PERIOD_US))
            found.write_text(str(REAL_TIME_US))
            self.real_time = found, str(FEW_US), str(REAL_TIME_US)
        return self.real_time

    def reclaim(self):
        """File and value that make the kernel drop the pages of the group."""
        found = self.file("memory", "memory.force_empty")
        return (found, "0") if found else (self.file("memory", "memory.reclaim"), "1G")

    def undo(self):
        """Thaws the group, removes its limits, whatever a fault has left, and gives it the usual share of CPU time."""
        self.share("1024", "100")
        for second in (0, 1):
            if entry := self.freezer(second):
                entry[0].write_text(entry[2])
        for entry in (self.quota(), self.real_time):
            if entry:
                entry[0].write_text(entry[2])
