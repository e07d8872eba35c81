"""10,000 times enable() and disable(), in a process of its own: nothing stays behind, in Python or below."""

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

import scripts  # noqa: E402

pytestmark = pytest.mark.torch

LEAKS = '''
import ctypes, gc, tracemalloc
import torch
import convgrad_cy.torch as override

class Allocated(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

allocated = getattr(ctypes.CDLL(None), "mallinfo2", None)
if allocated:
    allocated.restype = Allocated

def in_use():
    """Bytes of the C library's that are in use, where it is GNU's: to the byte, as the size of the process is not."""
    now = allocated() if allocated else Allocated()
    return now.uordblks + now.hblkhd

def ours():
    override.enable()
    override.disable()

PAIRS, WINDOWS = 10_000, 3
x, w = torch.randn(2, 4, 9, 9), torch.randn(4, 4, 3, 3)
before = torch.conv2d(x, w)
for _ in range(1_000):
    ours()
growth = []
for _ in range(WINDOWS):
    gc.collect()
    start = in_use()
    for _ in range(PAIRS):
        ours()
    gc.collect()
    growth.append((in_use() - start) / PAIRS)
print(min(growth))
gc.collect()
tracemalloc.start()
ours()
gc.collect()
start, objects = tracemalloc.get_traced_memory()[0], len(gc.get_objects())
for _ in range(PAIRS):
    ours()
gc.collect()
print((tracemalloc.get_traced_memory()[0] - start) / PAIRS, (len(gc.get_objects()) - objects) / PAIRS)
print(torch.equal(torch.conv2d(x, w), before))
'''


def test_nothing_grows(tmp_path):
    """Nothing may grow: one object would be 16 bytes a pair, one piece of the C library's memory 32."""
    native, python, same = scripts.run(tmp_path, LEAKS)
    assert float(native) < 32
    size, objects = map(float, python.split())
    assert size < 16 and objects < 1
    assert same == "True"
