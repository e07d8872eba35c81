"""``enable(benchmark=FILE)``: later processes choose and compute the same, and no file of another kind is touched."""

import json
import logging
import os

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

import planted  # noqa: E402
import scripts  # noqa: E402
from planted import settled  # noqa: E402

import convgrad_cy.torch as override  # noqa: E402
from convgrad_cy.torch import choices, choices_file  # noqa: E402
from convgrad_cy.torch.choices_file import Choice  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("no_choices")]

functional = torch.nn.functional
X, W = torch.ones(1, 2, 9), torch.ones(3, 2, 2)
OURS, THEIRS = "convgrad_cy", "pytorch"
HERE = os.path.dirname(__file__)


def forward():
    return (functional.conv1d(X, W),)


#: Two layers, some of whose kernels are slow, and the bits of their results. In the second process others are slow.
PROCESS = """
import hashlib
import pytest
import torch
import convgrad_cy.torch as override
import planted

torch.set_num_threads(1)
generator = torch.Generator().manual_seed(0)
tensors = [torch.randn(shape, generator=generator) for shape in ((2, 64, 28, 28), (64, 64, 3, 3), (2, 64, 28))]

def step():
    x, w, long = (tensor.clone().requires_grad_() for tensor in tensors)
    y = torch.conv2d(x, w, padding=1)
    dx, dw = torch.autograd.grad(y, (x, w), x.detach())
    return y.detach(), dx, dw, torch.conv1d(long, w[:, :, 1]).detach()

with pytest.MonkeyPatch.context() as monkeypatch:
    if SECOND:
        planted.slow_ours(monkeypatch, "conv_backward_filter")
        planted.slow_theirs(monkeypatch, "_convolution", lambda x, *rest: x.dim() == 4)
    else:
        planted.slow_ours(monkeypatch, "conv", "conv_backward_data")
        planted.slow_theirs(monkeypatch, "convolution_backward", lambda *call: call[-1][1])
    override.enable(benchmark=FILE)
    first = step()
    print(override.status().benchmark.measuring)
    last = first if SECOND else planted.settled(step)
for result in last:
    print(hashlib.sha256(result.numpy().tobytes()).hexdigest())
for key, count in sorted(override.status().benchmark.shapes.items()):
    print(*key, count)
"""


def test_a_second_process(tmp_path):
    """It must choose the same from its first call on, although other kernels are slow there, with the same bits."""
    file = tmp_path / "choices.json"
    first, second, third = (
        scripts.run(tmp_path, f"SECOND, FILE = {later}, {path!r}\n{PROCESS}", paths=[HERE])
        for later, path in ((False, str(file)), (True, str(file)), (True, str(tmp_path / "another.json")))
    )
    assert (first[0], second[0], third[0]) == ("3", "0", "3")
    assert first[1:] == second[1:]
    assert first[5:] == ["data gradient pytorch 1", "filter gradient convgrad_cy 1", "forward pytorch 2"]
    assert first[1:4] != third[1:4]  # so other choices have other bits


def test_the_file_can_be_read_by_people(monkeypatch, tmp_path):
    planted.slow_ours(monkeypatch, "conv")
    file = tmp_path / "choices.json"
    with override.enabled(benchmark=file):  # a path
        settled(forward)
        assert override.status().benchmark.file == str(file)
    (environment,) = (choices := json.loads(file.read_text())["choices"])
    (call,) = choices[environment]
    threads = torch.get_num_threads()
    isa = override.status().isa
    assert environment.endswith(f"torch {torch.__version__}, {isa}, threads {threads}, algorithm auto")
    assert call == (
        "forward: float32, x 1x2x9 with strides 18x9x1, w 3x2x2 with strides 4x2x1, "
        "stride 1, padding 0, dilation 1, output_padding 0, groups 1"
    )
    found = choices[environment][call]
    assert found["chosen"] == THEIRS and found["microseconds"].keys() == {OURS, THEIRS}
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


BROKEN = {
    "no JSON": "chosen: convgrad_cy",
    "half a file": '{"format": "choices of convgrad_cy.torch, version 1", "choices": {"here"',
    "nothing": "",
    "no text": b"\xff\xfe\x00",
    "a list": "[1, 2]",
    "a number": "3",
    "too deep": "[" * 100_000,
    "another format": '{"format": "choices of convgrad_cy.torch, version 2", "choices": {}}',
    "no format": '{"choices": {}}',
    "no choices": '{"format": "choices of convgrad_cy.torch, version 1"}',
}
CHOICES = {
    "an unknown owner": {"chosen": "cudnn", "microseconds": {OURS: 1, THEIRS: 1, "cudnn": 1}},
    "too many owners": {"chosen": f"{OURS}+{THEIRS}", "microseconds": {OURS: 1, THEIRS: 1, f"{OURS}+{THEIRS}": 1}},
    "a time that is missing": {"chosen": OURS, "microseconds": {OURS: 1}},
    "a time that is no number": {"chosen": OURS, "microseconds": {OURS: 1, THEIRS: "soon"}},
    "no times": {"chosen": OURS},
    "a choice that is no text": {"chosen": 1, "microseconds": {OURS: 1, THEIRS: 1}},
    "no object": [OURS],
}


def contents():
    for name, text in BROKEN.items():
        yield pytest.param(text if isinstance(text, bytes) else text.encode(), id=name)
    for name, choice in CHOICES.items():
        made = {"format": choices_file._FORMAT, "choices": {"here": {"forward: float32": choice}}}
        yield pytest.param(json.dumps(made).encode(), id=name)


@pytest.mark.parametrize("content", list(contents()))
def test_another_file_is_refused_and_left_alone(tmp_path, content):
    file = tmp_path / "choices.json"
    file.write_bytes(content)
    with pytest.raises(
        ValueError, match="benchmark must be the path of a file of choices or of no file, not "
    ) as error:
        override.enable(benchmark=str(file))
    assert repr(str(file)) in str(error.value)
    assert file.read_bytes() == content and not override.is_enabled()


@pytest.mark.parametrize("where", ["missing/choices.json", ""])
def test_places_where_no_file_can_be(tmp_path, where):
    with pytest.raises(OSError):
        override.enable(benchmark=tmp_path / where)
    assert not override.is_enabled()


def test_a_file_that_breaks_later(monkeypatch, tmp_path, caplog):
    """The choice must hold in the process. A warning must tell that the file does not keep it."""
    planted.slow_ours(monkeypatch, "conv")
    file = tmp_path / "choices.json"
    with override.enabled(benchmark=file), caplog.at_level(logging.WARNING, "convgrad_cy.torch"):
        file.write_text("broken")
        settled(forward)
        (functional.conv1d(X.double(), W.double()),)
        settled(lambda: (functional.conv1d(X.double(), W.double()),))
        assert override.status().benchmark.shapes == {("forward", THEIRS): 2}
    (record,) = caplog.records
    assert record.getMessage().startswith(f"choices are no longer kept in {file}: benchmark must be the path of a file")
    assert file.read_text() == "broken"


HERE_KEYS = [("here", f"forward: {number}") for number in range(3)]


def choice(candidate):
    return Choice(candidate, {OURS: 2.0, THEIRS: 1.0})


def test_two_processes_with_one_file(tmp_path):
    """Both must find the choices of both. The first choice of a shape must hold for the second process, too."""
    path = str(tmp_path / "choices.json")
    one, other = choices.Choices(path), choices.Choices(path)
    assert one.decide(HERE_KEYS[0], choice(OURS)) == choice(OURS)
    assert other.decide(HERE_KEYS[1], choice(THEIRS)) == choice(THEIRS)
    assert other.decide(HERE_KEYS[0], choice(THEIRS)) == choice(OURS)
    assert one.decide(HERE_KEYS[2], choice(THEIRS)) == choice(THEIRS)
    expected = dict(zip(HERE_KEYS, map(choice, (OURS, THEIRS, THEIRS)), strict=True))
    assert choices_file.read(path) == expected
    third = choices.Choices(path)
    assert {key: third.get(key) for key in HERE_KEYS} == expected


MERGED = """
from convgrad_cy.torch import choices
from convgrad_cy.torch.choices_file import Choice

made = choices.Choices(FILE)
for number in range(30):
    choice = Choice("pytorch", {"convgrad_cy": 2.0, "pytorch": 1.0})
    made.decide(("here", f"forward: {NUMBER} {number}"), choice)
"""


def test_many_choices_of_processes_at_a_time(tmp_path):
    """No choice may be lost if processes write at the same time."""
    from concurrent.futures import ThreadPoolExecutor

    path = str(tmp_path / "choices.json")

    def work(number):
        (folder := tmp_path / str(number)).mkdir()
        return scripts.run(folder, f"FILE, NUMBER = {path!r}, {number}\n{MERGED}")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, range(2)))
    assert len(choices_file.read(path)) == 60


def test_a_held_lock_does_not_stop_a_process(monkeypatch, tmp_path):
    """A stopped process may hold the lock. Choices must be kept all the same, after a pause."""
    import fcntl

    monkeypatch.setattr(choices_file, "_LONGEST_WAIT", 0.05)
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        made = choices.Choices(str(tmp_path / "choices.json"))
        made.decide(HERE_KEYS[0], choice(OURS))
    finally:
        os.close(folder)
    assert choices_file.read(made.path) == {HERE_KEYS[0]: choice(OURS)}


FORKED = """
import os
import signal
import torch
import convgrad_cy.torch as override
import planted
import pytest

x, w = torch.ones(2, 16, 24, 24), torch.ones(16, 16, 3, 3)

def is_ours():
    before = override.status().computed["_convolution"]
    assert torch.allclose(torch.conv2d(x, w), torch.tensor(144.0))
    return override.status().computed["_convolution"] > before

def fork(work):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)  # ends a child that hangs
        os._exit(int(work()))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

with pytest.MonkeyPatch.context() as monkeypatch:
    planted.SLEEP = 0.3  # PyTorch's two threads may wait for each other
    planted.slow_ours(monkeypatch, "conv")
    override.enable(benchmark=True)
    for threads in (2, 1):
        torch.set_num_threads(threads)
        planted.settled(lambda: (torch.conv2d(x, w),))
        print(threads, is_ours(), fork(is_ours))
    print(fork(lambda: override.status().benchmark.shapes[("forward", "pytorch")]))
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forks(tmp_path):
    """A child must keep choices, except where PyTorch's kernel would wait for threads that the child lacks."""
    assert scripts.run(tmp_path, FORKED, paths=[HERE]) == ["2 False 1", "1 False 0", "2"]
