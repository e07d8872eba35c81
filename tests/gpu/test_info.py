"""The report of ``info`` on GPUs."""

import sys

import fake_cupy

from convgrad_cy import dtypes
from convgrad_cy.cli import info
from convgrad_cy.gpu import compiler, cubins, families


def test_gpus(monkeypatch):
    fake_cupy.install(monkeypatch)
    monkeypatch.setattr(info, "find_spec", lambda name: name)
    compiler, (_, folder), *devices = info.gpu_lines()
    assert compiler == ("CuPy", "14, compiler: NVRTC 13.0")
    assert folder == f"{cubins.folder()} (0 kernels, 0.0 MiB)"
    assert devices[::2] == [("GPU", "Imagined GPU (sm_90, 132 multiprocessors, 80 GiB)")] * 2
    for name, kernels in devices[1::2]:
        assert name == "GPU kernels"
        table = dict(part.split(": ") for part in kernels.split("; "))
        assert set(table) <= set(families.NAMES)
        assert sorted(name for names in table.values() for name in names.split(", ")) == sorted(dtypes.NAMES)


def test_no_device(monkeypatch):
    fake_cupy.install(monkeypatch)
    monkeypatch.setattr(info, "find_spec", lambda name: name)
    sys.modules["cupy"].cuda.runtime.getDeviceCount = lambda: 0
    assert info.gpu_lines()[0] == ("GPU", "none: CuPy finds no device")


def test_nothing_can_be_compiled(monkeypatch):
    fake_cupy.install(monkeypatch)
    monkeypatch.setattr(info, "find_spec", lambda name: name)

    def compile(text, options):
        raise compiler.CompileError("no such\noption")

    monkeypatch.setattr(compiler, "compiled", compile)
    assert info.gpu_lines()[0] == ("CuPy", "14, compiler: none: no such option")


def test_a_cupy_for_amd_gpus(monkeypatch):
    fake_cupy.install(monkeypatch)
    monkeypatch.setattr(info, "find_spec", lambda name: name)
    monkeypatch.setattr(sys.modules["cupy"].cuda.runtime, "is_hip", True)
    said = "none: CuPy is installed, but it is for ROCm, and the kernels are for NVIDIA GPUs"
    assert info.gpu_lines()[0] == ("GPU", said)
