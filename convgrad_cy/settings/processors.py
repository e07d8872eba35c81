"""The processors that this process may use: the cores among them, and the quota of its control groups."""

import os
from pathlib import Path

_CGROUPS, _OWN, _TOPOLOGY = "/sys/fs/cgroup", "/proc/self/cgroup", "/sys/devices/system/cpu"


def processors():
    """Numbers of the processors that the process may run on. The list is empty where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def count_cores(numbers, topology=_TOPOLOGY):
    """Number of cores with these processors: hyperthreads share the vector units of their core.

    A processor without an entry in ``topology`` counts as a core.
    """
    cores = set()
    for number in numbers:
        try:
            cores.add(Path(topology, f"cpu{number}", "topology", "thread_siblings_list").read_text().strip())
        except OSError:
            cores.add(number)
    return len(cores)


def _quota_of(group):
    """Processors that a control group, of version 1 or 2, may use; None without a limit."""
    try:
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota, period = ((group / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        quota, period = int(quota), int(period)
    except (OSError, ValueError):  # no such files, or the quota is "max"
        return None
    return max(1, quota // period) if quota > 0 and period > 0 else None


def _groups(root, own):
    """The folders of the process's control groups for processors and of their parents."""
    yield Path(root)  # in a container, often the only visible one
    try:
        lines = Path(own).read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0" or "cpu" in controllers.split(","):
            folder = Path(root, controllers, path.lstrip("/"))
            while folder != Path(root):
                yield folder
                folder = folder.parent


def quota(root=_CGROUPS, own=_OWN):
    """Processors that the control groups of this process may use together, or None without a limit."""
    return min(filter(None, map(_quota_of, _groups(root, own))), default=None)
