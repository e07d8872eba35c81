"""Every variant of every kernel, forced as bench/gpu/variants.py forces it on a GPU, on the simulator."""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from operations import Tensors, bits, dtype_of, reference_kernel
from sim.executor import SCHEDULES, SimulationError
from simulated import H200, Case, task_without_memory
from tensor_cores import TILES_ALONE

sys.path.append(str(Path(__file__).parents[2]))

from bench.gpu import forced, variant_rows
from convgrad_cy.gpu import mma, module, reduce, simt_tiles, tiles

FAMILIES = forced.FAMILIES
#: All devices that mma.variants() knows, and a GPU without such tensor cores.
DEVICES = {device.arch: device for device in mma._DEVICES} | {75: H200._replace(arch=75, shared_bytes=64 << 10)}
GROUPS = [group.split() for group in variant_rows.GROUPS]


def rows_of(family, kind, device, kernels=variant_rows.KERNELS, formats=variant_rows.FORMATS):
    """The forced rows on a device. gather.cu chooses blocks by the length of a sum: its rows are named sum_of_*."""

    def task_of(kernel, problem, kind, formats):
        problem = variant_rows.LAYERS[problem].problem
        return task_without_memory(kernel, problem, *variant_rows.KINDS[kind], formats, device)

    for row in variant_rows.rows(family, kind, task_of):
        is_forced = row.problems[0].startswith("sum_of_") if family == "gather" else row.choice is not None
        if is_forced and row.kernel in kernels and row.formats in formats:
            yield row


def simulated(row, problem, tensors, device):
    """A case, and its plan."""
    problem = variant_rows.LAYERS[problem].problem
    precision = variant_rows.KINDS[row.kind][1]
    case = Case(row.kernel, problem, tensors, precision=precision, formats=row.formats, device=device)
    with forced.taking(row.family, row.choice):
        return case, FAMILIES[row.family].launches(case.task)


def check(row, device, schedules=SCHEDULES):
    """Assert that a row's results are exact, with equal bits in each order of warps, and that it ran its choice."""
    for problem, _, what, tensors in variant_rows.calls_of(row):
        tensors = Tensors(**tensors)
        case, plan = simulated(row, problem, tensors, device)
        assert variant_rows.is_taken(row, [(one.source, one.kernel, one.macros) for one in plan.launches]), row.name
        result, *others = [case.run(plan, one) for one in (schedules if what == "integers" else schedules[:1])]
        assert all(bits(other) == bits(result) for other in others), row.name
        problem = variant_rows.LAYERS[problem].problem
        expected = reference_kernel(row.kernel, problem, tensors).astype(dtype_of(variant_rows.KINDS[row.kind][0]))
        np.testing.assert_array_equal(
            result.astype(np.float64), expected.astype(np.float64), err_msg=f"{row.name}, {what}"
        )


# ---- all variants exist ----


def launched(device):
    """(source, kernel, macros) that the forced rows launch on a device."""
    found = set()
    for family, kind in GROUPS:
        for row in rows_of(family, kind, device):
            for problem in row.problems:
                kernel, precision = row.kernel, variant_rows.KINDS[row.kind]
                layer = variant_rows.LAYERS[problem].problem
                task = task_without_memory(kernel, layer, *precision, row.formats, device)
                with forced.taking(row.family, row.choice):
                    launches = FAMILIES[row.family].launches(task).launches
                found.update((one.source, one.kernel, one.macros) for one in launches)
    return found


@pytest.mark.slow(whole=True)
@pytest.mark.parametrize("arch", DEVICES)
def test_every_variant_is_reached(arch):
    """Rows must reach all variants that families list, and each tile, shape of a thread and block, in each type."""
    found = launched(DEVICES[arch])
    named = {*reduce.variants(), *(mma.variants((DEVICES[arch],)) if arch >= 80 else ())}
    assert named <= found, "\n".join(map(str, sorted(named - found)))

    def has(source, **macros):
        wanted = {name: str(value) for name, value in macros.items()}.items()
        return any(source == one and wanted <= dict(others).items() for one, _, others in found)

    for storage, size in (("f16", 4), ("bf16", 4), ("float", 4), ("int", 4), ("double", 8)):
        for tile, wgrad, partials in product(simt_tiles.TILES[size], (0, 1), (0, 1)):
            macros = forced.Product(tile, 1).macros()
            assert has("simt.cu", STORAGE=storage, WGRAD=wgrad, PARTIALS=partials, **macros)
        for threads in (32, 64, 128, 256):
            assert has("gather.cu", STORAGE=storage, THREADS=threads)
        for source, last in product(("depthwise.cu", "depthwise_wgrad.cu"), (0, 1)):
            for channels, positions in product((1, 2) if last else (1,), (1, 2, 4)):
                assert has(source, STORAGE=storage, CHANNELS_LAST=last, CHANNELS=channels, POSITIONS=positions)


def test_what_is_forced_is_what_is_planned():
    """A tile, splits and a shape that no plan of these problems has must be forced. Later plans must be as before."""
    task = task_without_memory("fprop", variant_rows.LAYERS["tails_fprop"].problem, "float16", device=H200)
    before = mma.launches(task), FAMILIES["simt"].launches(task)
    for family, name in (("mma", "mma"), ("simt", "simt.cu")):
        for choice in forced.choices(family, task):
            with forced.taking(family, choice):
                plan = forced.families.plan(task)
            (launch,) = (launch for launch in plan.launches if launch.source.startswith(name))
            assert choice.macros().items() <= dict(launch.macros).items()
            assert (plan.launches[-1].kernel == "reduce") == (choice.splits > 1)
    assert before == (mma.launches(task), FAMILIES["simt"].launches(task))


# ---- all variants are right ----


@pytest.mark.simulator
@pytest.mark.slow
@pytest.mark.parametrize("kernel", variant_rows.KERNELS)
@pytest.mark.parametrize(
    "family, kind, formats",
    [
        pytest.param(family, kind, formats, id="-".join((family, kind, *formats)))
        for family, kind in GROUPS
        for formats in variant_rows.FORMATS_OF[family]
    ],
)
def test_variants(family, kind, formats, kernel):
    rows = list(rows_of(family, kind, H200, (kernel,), (formats,)))
    assert rows
    for row in rows:
        check(row, H200)


@pytest.mark.simulator
@pytest.mark.slow
@pytest.mark.parametrize("arch", [arch for arch in DEVICES if arch not in (75, 90)])
@pytest.mark.parametrize("kind", variant_rows.KINDS_OF["mma"])
def test_stages_of_other_devices(kind, arch):
    """Tiles must be exact whose number of stages in shared memory differs from H100 and H200."""
    device = DEVICES[arch]
    for row in rows_of("mma", kind, device, formats=variant_rows.FORMATS[1:2]):
        by_depth, task_kind = row.kernel == "wgrad", mma_kind(kind)
        here, there = (tiles.stages(task_kind, row.choice.tile, one, by_depth) for one in (device, H200))
        if here != there and row.kernel != "dgrad":
            check(row, device, SCHEDULES[1:2])


def mma_kind(kind):
    problem = variant_rows.LAYERS["vectors"].problem
    return mma.kind_of(task_without_memory("fprop", problem, *variant_rows.KINDS[kind]))


@pytest.mark.simulator
@pytest.mark.parametrize("family, kind", [("mma", "float16"), ("simt", "int32"), ("depthwise", "float32")])
def test_a_wrong_kernel_is_seen(family, kind):
    """A kernel with exchanged taps must be seen: the first row is then not right. Every change runs this part."""
    row = next(rows_of(family, kind, H200, ("fprop",), variant_rows.FORMATS[1:2]))
    row = row._replace(problems=row.problems[-1:])
    check(row, H200)
    problem, _, _, tensors = next(variant_rows.calls_of(row))
    moved = {**tensors, "w": tensors["w"][..., ::-1]}
    case, plan = simulated(row, problem, Tensors(**moved), H200)
    expected = reference_kernel("fprop", variant_rows.LAYERS[problem].problem, Tensors(**tensors))
    assert not np.array_equal(case.run(plan).astype(np.float64), expected)


@pytest.mark.simulator
@pytest.mark.parametrize(
    "columns, old, new",
    [
        (16, "< TILE_COLUMNS % ROWS_APART;", "< TILE_COLUMNS % ROWS_APART / 2;"),
        (8, "< TILE_COLUMNS % ROWS_APART;", "< 0;"),
        (8, "2 * i + 1 == COLUMN_PARTS", "false"),
    ],
    ids=("half of the columns", "no columns", "sixteen for eight"),
)
def test_a_wrong_narrow_tile_is_seen(columns, old, new):
    """A narrow tile must be seen as wrong if too few columns are copied, or more are read than exist."""
    rows = rows_of("mma", "bfloat16", H200, ("fprop",), variant_rows.FORMATS[1:2])
    row = next(row for row in rows if row.choice.tile.columns == columns)
    problem, _, _, tensors = next(variant_rows.calls_of(row))
    tensors = Tensors(**tensors)
    case, plan = simulated(row, problem, tensors, H200)
    expected = reference_kernel("fprop", variant_rows.LAYERS[problem].problem, tensors)
    assert np.array_equal(case.run(plan, text=TILES_ALONE).astype(np.float64), expected)
    assert old in module.text("mma.cu")
    try:
        result = case.run(plan, text=lambda *key: TILES_ALONE(*key).replace(old, new))
    except SimulationError:
        return
    assert not np.array_equal(result.astype(np.float64), expected)
