"""A description of the measured machine."""

import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path

from .processes import ROOT


def _field(path, name):
    """A field of a file of "name : value" lines, or None."""
    try:
        lines = Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == name), None)


def _commit():
    """The commit of the checkout, and whether files differ from it."""
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _vector_units():
    """The x86 instruction set extensions that matter here and that this processor has."""
    flags = set((_field("/proc/cpuinfo", "flags") or "").split())
    return sorted(flags & {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "amx_tile"})


def about():
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": _commit(),
        "processor": _field("/proc/cpuinfo", "model name") or platform.processor(),
        "family": [_field("/proc/cpuinfo", "cpu family"), _field("/proc/cpuinfo", "model")],
        "vector_units": _vector_units(),
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "cache": _field("/proc/cpuinfo", "cache size"),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "system": platform.platform(),
        "load_at_start": os.getloadavg()[0],
    }
