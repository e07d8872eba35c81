"""``python -m convgrad_cy run --max-bytes``: the memory that a small file may demand."""

import json
import re
import sys

import numpy as np
import pytest
from commands import assert_one_line, start, status_of

import convgrad_cy as cg

ONE = np.ones((1, 1, 1, 1), np.float32)
FAR = 5 * 10**9  # elements of a row: 20 GB
#: Operation -> arrays and attributes of a result of 20 GB or more. Results of conv_backward are as large as its inputs.
GREEDY = {
    "conv": ({"x": ONE, "w": ONE}, {"padding": [[0, 0], [0, FAR - 1]]}),
    "conv_backward_data": ({"dy": ONE, "w": ONE}, {"x_shape": [1, 1, 1, FAR], "stride": [1, FAR]}),
    "conv_backward_filter": (
        {"x": np.ones((1, 1, 1), np.float32), "dy": np.ones((1, 10**5, 1), np.float32)},
        {"w_shape": [10**5, 1, 50_000], "padding": 49_999, "stride": 10**6},
    ),
    "conv_transpose": ({"x": ONE, "w": ONE}, {"output_shape": [1, 1, 1, FAR], "stride": [1, FAR]}),
    "mindspore.Conv2DBackpropInput": (
        {"dout": ONE, "weight": ONE},
        {"out_channel": 1, "kernel_size": 1, "pad_mode": "valid", "stride": 10**5, "input_size": [1, 1, 10**5, 10**5]},
    ),
    "tensorflow.Conv2DBackpropInput": (
        {"filter": np.ones((1, 1, 1, 0), np.float32), "out_backprop": np.ones((1, 10**5, 50_000, 0), np.float32)},
        {"input_sizes": [1, 10**5, 50_000, 1], "strides": [1, 1, 1, 1], "padding": "VALID"},
    ),
    "onednn.ConvolutionBackwardData": (
        {"diff_dst": ONE, "weights": ONE},
        {
            "strides": [10**5, 10**5],
            "pads_begin": [0, 0],
            "pads_end": [0, 0],
            "dilations": [1, 1],
            "data_format": "NCX",
            "weights_format": "OIX",
            "dst_shape": [1, 1, 10**5, 10**5],
        },
    ),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(arrays, attributes):
    np.savez("in.npz", **arrays)
    with open("attributes.json", "w") as file:
        json.dump(attributes, file)


@pytest.mark.parametrize("name", GREEDY)
def test_a_result_that_is_too_large(name, folder, capsys):
    """A result that is too large must be refused, by default, too: a few bytes of JSON must not exhaust the memory."""
    write(*GREEDY[name])
    for options in ((), ("--max-bytes", 10**8)):
        assert status_of("run", name, *options, "--attrs", "attributes.json", "in.npz", "out.npz") == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert_one_line(printed.err, "--max-bytes must be at least ")
        size, bound = re.search(
            r"at least (\d+) for an array of shape .* and dtype float32, not (\d+)$", printed.err
        ).groups()
        assert int(size) >= 4 * FAR and int(bound) == (options or (None, 8 << 30))[1]
    assert not (folder / "out.npz").exists()


@pytest.mark.parametrize("elements, status", [(1 << 14, 0), ((1 << 14) + 1, 2)])
def test_the_least_bound(elements, status, folder, capsys):
    """A result of exactly 64 KiB must pass. One more element must be refused."""
    write({"x": ONE, "w": ONE}, {"padding": [[0, 0], [0, elements - 1]]})
    command = ("run", "conv", "--attrs", "attributes.json", "--max-bytes", 1 << 16, "in.npz", "out.npz")
    assert status_of(*command) == status
    printed = capsys.readouterr()
    if status:
        says = f"--max-bytes must be at least {(1 << 16) + 4} for an array of shape (1, 1, 1, {elements})"
        assert_one_line(printed.err, says)


@pytest.mark.parametrize("less, status", [(0, 0), (1, 2)])
def test_an_array_in_the_file_may_be_as_large_as_the_bound(less, status, folder, capsys):
    """An array must pass if it and its header are exactly as large as the bound."""
    write({"x": np.ones((1, 1, 1, 1 << 15), np.float32), "w": ONE}, {})
    size = (1 << 17) + 128
    assert status_of("run", "conv", "--max-bytes", size - less, "in.npz", "out.npz") == status
    printed = capsys.readouterr()
    if status:
        assert_one_line(printed.err, f"--max-bytes must be at least {size} for the array 'x' in 'in.npz'")


@pytest.mark.parametrize("size, status", [(1 << 18, 0), ((1 << 18) - 1, 2)])
def test_the_bound_is_the_last_size_that_passes(size, status, folder, capsys):
    """The bound must be the last size that passes, here with a result of 256 KiB."""
    write({"x": ONE, "w": ONE}, {"padding": [[0, 0], [0, (1 << 16) - 1]]})
    command = ("run", "conv", "--attrs", "attributes.json", "--max-bytes", size, "in.npz", "out.npz")
    assert status_of(*command) == status
    assert (folder / "out.npz").exists() == (status == 0)
    printed = capsys.readouterr()
    if status:
        assert_one_line(printed.err, f"--max-bytes must be at least {1 << 18} for an array of shape (1, 1, 1, 65536)")
    assert cg.conv(ONE, ONE, padding=((0, 0), (0, 1 << 16))).shape == (1, 1, 1, 65537), "the bound is left behind"


def test_an_archive_that_unpacks_to_far_more(folder, capsys, monkeypatch):
    """An archive that unpacks to far more must be refused by its header, before anything is unpacked."""
    np.savez_compressed("in.npz", x=np.zeros((1, 1, 1 << 10, 1 << 10)), w=ONE.astype(np.float64), other=ONE)
    assert (folder / "in.npz").stat().st_size < 10_000
    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", lambda file, name: pytest.fail("unpacked"))
    assert status_of("run", "conv", "--max-bytes", 1 << 20, "in.npz", "out.npz") == 2
    assert_one_line(
        capsys.readouterr().err, f"--max-bytes must be at least {(8 << 20) + 128} for the array 'x' in 'in.npz'"
    )


def test_an_array_that_claims_more_than_it_holds(folder, capsys):
    """An array with a false header must be refused before its memory is touched."""
    import zipfile

    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 25000000000), }".ljust(117) + "\n"
    with zipfile.ZipFile("in.npz", "w") as file:
        file.writestr("x.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(64))
    assert status_of("run", "conv", "in.npz", "out.npz") == 2
    assert_one_line(capsys.readouterr().err, "cannot read arrays from 'in.npz': ")


def test_the_memory_of_a_process(folder):
    """A refused process must take little memory, as the system counts it."""
    resource = pytest.importorskip("resource")
    write({"x": ONE, "w": ONE}, {"padding": [[0, 0], [0, 10**9 - 1]]})
    process = start("run", "conv", "--attrs", "attributes.json", "--max-bytes", 10**9, "in.npz", "out.npz")
    assert process.returncode == 2
    assert_one_line(process.stderr, f"--max-bytes must be at least {4 * 10**9} for an array")
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    assert most < 2 * 10**9


@pytest.mark.parametrize("value", ["65535", "-1", "many", "1e9"])
def test_bad_bounds(value, folder, capsys):
    write({"x": ONE, "w": ONE}, {})
    assert status_of("run", "conv", f"--max-bytes={value}", "in.npz", "out.npz") == 2
    assert_one_line(capsys.readouterr().err, "argument --max-bytes: ")
