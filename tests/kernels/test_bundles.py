"""Several groups in one task, which channels last are copied together, have the same results as one by one."""

import numpy as np
import pytest
from operations import DTYPES, OPERATIONS, assert_exact, bits, integer_tensors, real_tensors
from plans import plan_of
from problems import PROBLEMS, parse

from convgrad_cy import cpu
from convgrad_cy.cpu import winograd as winograd_family
from convgrad_cy.cpu.machine import Machine
from convgrad_cy.cpu.plan.steps import Blocks
from convgrad_cy.cpu.winograd import plan as winograd
from convgrad_cy.cpu.winograd import tilings
from convgrad_cy.dtypes import TABLE
from convgrad_cy.problem import DGRAD, FPROP, WGRAD, ConvProblem

LAYERS = (
    "g4ic32ih9oc32kh3ph1",
    "g7ic35ih9oc21kh3ph1",  # a bundle that is not full, and vectors that are not full
    "g6ic96ih8oc96kh3sh2ph1",
    "g5ic80ih7oc320kh3ph1",
    "g3ic60ih6oc6kh1",
    "g4ic12ih5oc36kh3dh1ph2",
    "g4ic32ih3oc32kh7sh1ph9",  # positions that no tap reaches
    "g7ic70ih9iw16oc84kh3sh2ph1",  # stride phases that tasks compute together
    "g3ic36id5ih6oc39kd3kh4sd1sh2ph1",
)
EIGHTS = (  # groups of eight outputs, which Winograd's algorithm takes together
    "g4ic32ih9oc32kh3ph1",
    "g7ic35ih11iw18oc56kh3ph1",
    "g3ic6ih17oc24kh3dh1ph2",
    "g5ic80ih9iw22oc80kh3ph1",  # groups of sixteen outputs, which are a vector on some machines
    "g5ic40ih13iw9oc40kh4sh2ph1",
    "g3ic60iw45oc24kw7pw3",
)
operations = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
#: Pairs of bfloat16, if the machine multiplies them, and all types by the sum of single products.
PAIRED = [("bfloat16", "auto")] if "bfloat16" in DTYPES and cpu.this_machine().multiplies_pairs else []
WAYS = [*((dtype, "direct") for dtype in DTYPES), *PAIRED]


#: Bundles of as many groups as there are, or of three.
BUNDLES = cpu.this_machine().tuning._replace(
    wanted_tasks=1, thread_tasks=1, bundle_bytes=1 << 20, adjacent_bundle_bytes=1 << 20, wanted_tile_tasks=1
)


@pytest.fixture
def bundles(machine_with):
    machine_with(own_tuning=BUNDLES, threads=1)


@pytest.mark.tuning
@pytest.mark.parametrize("operation", (FPROP, DGRAD, WGRAD))
def test_are_planned(operation):
    """Bundles must be planned channels last, if enough tasks are left."""
    machine = cpu.this_machine()._replace(vector_bytes=64, tile_column_bytes=256, threads=2)
    for batch, groups, adjacent, expected in ((8, 64, False, 4), (8, 64, True, 1), (1, 2, False, 1)):
        problem = ConvProblem(batch, groups, 16, 16, (1, 28, 28), (1, 28, 28), (1, 3, 3), pad_begin=(0, 1, 1))
        assert Blocks(*plan_of(operation, problem, TABLE[2], adjacent, machine).blocks).groups == expected


@pytest.mark.tuning
@pytest.mark.parametrize("threads, expected", ((1, 4), (2, 4), (3, 2), (4, 2), (100, 1)))
def test_leave_tasks_for_each_thread(threads, expected):
    """wgrad of 32 groups in one slice must bundle 256 bytes of channels, or fewer if each thread needs four tasks."""
    machine = cpu.this_machine()._replace(vector_bytes=64, tile_column_bytes=256, threads=threads)
    problem = ConvProblem(8, 32, 16, 16, (1, 28, 28), (1, 14, 14), (1, 3, 3), stride=(1, 2, 2), pad_begin=(0, 1, 1))
    assert Blocks(*plan_of(WGRAD, problem, TABLE[2], False, machine).blocks).groups == expected


@pytest.mark.tuning
def test_are_whole_lines():
    """A bundle must be whole cache lines: four groups of 48 bytes make three lines, although five would fit."""
    machine = cpu.this_machine()._replace(vector_bytes=64, tile_column_bytes=256)
    problem = ConvProblem(8, 64, 12, 12, (1, 28, 28), (1, 28, 28), (1, 3, 3), pad_begin=(0, 1, 1))
    assert Blocks(*plan_of(FPROP, problem, TABLE[2], False, machine).blocks).groups == 4


@pytest.mark.tuning
@pytest.mark.parametrize(
    "operation, channels, adjacent, expected",
    (
        (FPROP, 16, False, 8),
        (DGRAD, 12, False, 8),
        (FPROP, 13, False, 1),
        (WGRAD, 13, False, 8),
        (FPROP, 16, True, 4),
        (DGRAD, 12, True, 5),
        (WGRAD, 16, True, 1),
    ),
)
def test_pairs_are_planned(operation, channels, adjacent, expected):
    """Groups of whole pairs must be bundled as expected, channels first, too. The pairs of wgrad are positions."""
    machine = Machine(6, 256, 64, True, 32 << 20, 2)
    problem = ConvProblem(8, 64, channels, channels, (1, 28, 28), (1, 28, 28), (1, 3, 3), pad_begin=(0, 1, 1))
    blocks = Blocks(*plan_of(operation, problem, TABLE[1], adjacent, machine).blocks)
    assert (blocks.groups, bool(blocks.pairs)) == (expected, True)


@pytest.mark.tuning
def test_phases_are_planned():
    """Groups that are a part of a cache line must be bundled to whole lines; all phases of rows must be joined, too."""
    machine = Machine(6, 64, 32, False, 32 << 20, 2)
    for channels, adjacent, expected in ((8, False, (8, 4)), (16, False, (4, 1)), (8, True, (1, 4))):
        sizes = (1, 56, 56), (1, 28, 28), (1, 3, 3), (1, 2, 2), (1, 1, 1), (0, 1, 1)
        blocks = Blocks(
            *plan_of(DGRAD, ConvProblem(8, 32, channels, channels, *sizes), TABLE[2], adjacent, machine).blocks
        )
        assert (blocks.groups, blocks.phases) == expected


@operations
@pytest.mark.parametrize("dtype, algorithm", WAYS)
@pytest.mark.parametrize("text", LAYERS)
@pytest.mark.usefixtures("bundles")
def test_exact(operation, dtype, algorithm, text):
    problem = parse(f'mb2{text}n"bundled"')
    tensors, _ = integer_tensors(problem, dtype)
    for formats in (("NXC", "XIO"), ("NXC", "OIX"), ("NCX", "OIX")):
        result = operation.call(problem, tensors, *formats, layout=np.ascontiguousarray, algorithm=algorithm)
        assert_exact(result, operation.expected(problem, tensors, *formats), dtype)


@operations
@pytest.mark.usefixtures("bundles")
def test_all_problems(operation):
    for problem in PROBLEMS.values():
        tensors, _ = integer_tensors(problem, "float32")
        result = operation.call(problem, tensors, "NXC", layout=np.ascontiguousarray)
        assert_exact(result, operation.expected(problem, tensors, "NXC"), "float32")


@operations
@pytest.mark.parametrize("dtype, algorithm", [("float32", "direct"), *PAIRED])
@pytest.mark.parametrize("text", LAYERS)
def test_bits_and_nonfinite_values(operation, dtype, algorithm, text, machine_with):
    """Bundled groups must have the bits of separate tasks, in either layout. NaN in one group must stay there."""
    problem = parse(f'mb2{text}n"bundled"')
    tensors = real_tensors(problem, dtype)
    alone = BUNDLES._replace(bundle_bytes=0, adjacent_bundle_bytes=0)
    for value in (1.0, np.nan, np.inf):
        for name in operation.reads:
            array = getattr(tensors, name).copy()
            array.reshape(-1)[array.size // 2 :: 97] = value
            results = []
            for tuning, data_format in ((alone, "NCX"), (BUNDLES, "NCX"), (BUNDLES, "NXC")):
                machine_with(own_tuning=tuning, threads=1)
                spoiled = tensors._replace(**{name: array})
                result = operation.call(problem, spoiled, data_format, layout=np.ascontiguousarray, algorithm=algorithm)
                channels = 1 if data_format == "NCX" or operation.makes == "w" else -1
                results.append(np.moveaxis(result, channels, 1))
            for result in results[1:]:
                if value == 1:
                    assert bits(result) == bits(results[0])
                np.testing.assert_array_equal(result.astype(np.float32), results[0].astype(np.float32))


@pytest.mark.tuning
@pytest.mark.parametrize("operation", (FPROP, DGRAD, WGRAD))
def test_are_planned_by_winograd(operation):
    """Two groups of eight outputs must be bundled if tasks are left.

    The outputs of other groups do not fill vectors.
    """
    machine = cpu.this_machine()._replace(vector_bytes=32, tile_column_bytes=64)
    for groups, outputs, expected in ((32, 8, 2), (32, 6, 1), (32, 16, 1), (1, 8, 1)):
        channels = (outputs, 8) if operation == DGRAD else (8, outputs)
        problem = ConvProblem(1, groups, *channels, (1, 28, 28), (1, 28, 28), (1, 3, 3), pad_begin=(0, 1, 1))
        made = winograd.choose(operation, problem, tilings.TILINGS[1], machine.tile).chosen
        assert (made.groups, made.chunk) == (expected, 8 * expected)


@operations
@pytest.mark.parametrize("dtype", ("float32", "float16"))
@pytest.mark.parametrize("text", EIGHTS)
@pytest.mark.parametrize("kept", (True, False), ids=("filters kept", "filters of tasks"))
def test_winograd(operation, dtype, text, kept, machine_with, monkeypatch):
    """All bits must equal the bits of groups in separate tasks, in either layout. NaN must stay in its group."""
    tuning = BUNDLES if kept else BUNDLES._replace(small_filter_bytes=0)
    machine_with(own_tuning=tuning)
    problem = parse(f'mb2{text}n"bundled"')
    tensors = real_tensors(problem, dtype)
    spoiled = tensors._replace(**{name: getattr(tensors, name).copy() for name in operation.reads})
    for name in operation.reads:
        getattr(spoiled, name).reshape(-1)[0] = np.nan

    def results():
        for data_format in ("NCX", "NXC"):
            for each in (tensors, spoiled):
                yield operation.call(problem, each, data_format, algorithm="winograd", layout=np.ascontiguousarray)

    def as_before(*what):
        """Choose the tiling of the usual machine: for the model, groups one by one take another time."""
        return tilings.decide(*what[:-1], what[-1]._replace(tuning=tuning))

    together = list(results())
    machine_with(own_tuning=tuning._replace(bundled_outputs=1 << 30))
    monkeypatch.setattr(winograd_family, "decide", as_before)
    for result, expected in zip(together, results(), strict=True):
        np.testing.assert_array_equal(result, expected)
        assert not np.isnan(expected).all()
    assert np.isfinite(together[0]).all() and np.isnan(together[1]).any()
