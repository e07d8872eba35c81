"""The functions on Dask arrays: exact on integers, and the bits of one call for "direct"."""

import numpy as np
import pytest
from operations import DTYPES, OPERATIONS, bits, integer_tensors, to_formats
from problems import parse

import convgrad_cy as cg

pytestmark = pytest.mark.dask

FUNCTIONS = ("conv", "conv_backward_data", "conv_backward_filter")
#: Problem -> the chunks of x along each spatial axis.
CUT = {
    'mb4ic3iw24oc5kw3pw1n"cut_1d"': ((8, 8, 8),),
    'mb2ic2iw40oc3kw4sw3dw1pw5n"cut_1d_all"': ((9, 12, 19),),
    'mb2ic3iw23oc2kw2sw5n"cut_1d_stride_beyond_kernel"': ((10, 10, 3),),
    'mb3ic4ih20iw24oc5kh3sh2ph1n"cut_2d_stride"': ((8, 8, 4), (6, 6, 6, 6)),
    'mb2ic3ih21iw24oc2kh3kw5sh3sw2dh1ph2pw1n"cut_2d_mixed"': ((9, 12), (12, 12)),
    'mb2g4ic8oc8ih12kh3ph1n"cut_2d_groups"': ((4, 4, 4), (12,)),
    'mb1g12ic12oc12ih9iw15kh5ph2n"cut_2d_depthwise"': ((4, 5), (5, 5, 5)),
    'mb1ic3id12ih10iw8oc4kd3kh1kw3pd1ph0pw1n"cut_3d"': ((6, 6), (3, 7), (2, 2, 4)),
}
CUT = {problem.name: (problem, chunks) for problem, chunks in ((parse(text), chunks) for text, chunks in CUT.items())}


@pytest.fixture(autouse=True)
def synchronous():
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


def lazy(array, chunks, data_format="NCX"):
    """A Dask array with one image in a chunk, and with these chunks along the spatial axes."""
    import dask.array as da

    images, channels = (1,) * len(array), (-1,)
    last = not data_format.startswith("NC")
    return da.from_array(array, chunks=(images, *chunks, *channels) if last else (images, *channels, *chunks))


def call(name, problem, chunks, tensors, formats=("NCX", "OIX"), **keywords):
    """The Dask array of a function; dy has the chunks of y."""
    import convgrad_cy.dask as cd

    x, w, y = (to_formats(tensor, getattr(tensors, tensor), *formats) for tensor in "xwy")
    keywords |= {**problem.keywords, "data_format": formats[0], "filter_format": formats[1]}
    of_x = lazy(x, chunks, formats[0])
    result = cd.conv(of_x, w, **keywords)
    if name == "conv":
        return result
    of_y = lazy(y, result.chunks[1:-1] if formats[0] == "NXC" else result.chunks[2:], formats[0])
    if name == "conv_backward_data":
        dx = cd.conv_backward_data(of_y, w, x.shape, **keywords)
        assert dx.chunks == of_x.chunks
        return dx
    return cd.conv_backward_filter(of_x, of_y, w.shape, **keywords)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("problem", CUT)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers_are_exact(name, problem, dtype):
    problem, chunks = CUT[problem]
    tensors, results = integer_tensors(problem, dtype)
    for formats in (("NCX", "OIX"), ("NXC", "XIO")):
        found = call(name, problem, chunks, tensors, formats)
        result = found.compute()
        wanted = to_formats(OPERATIONS[name].makes, results[OPERATIONS[name].kernel], *formats)
        assert result.dtype == found.dtype == tensors.x.dtype and result.shape == found.shape == wanted.shape
        np.testing.assert_array_equal(result.astype(np.float64), wanted)


def real(shape, dtype="float32", seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


#: x, w, keywords and chunks of x. Except for the last three, some blocks by themselves would take another family or
#: another order of sums than the whole does, and have other bits.
SAME_BITS = {
    "fewer channels": (
        (1, 40, 46, 12), (8, 40, 7, 4), {"stride": (2, 1), "padding": ((3, 4), (1, 3))},
        ((36, 10), (3, 9))),
    "one axis": ((3, 160, 261), (8, 160, 3), {"stride": 3, "dilation": 2, "padding": ((0, 2),)}, ((30, 93, 54, 84),)),
    "more of y": (
        (1, 16, 22, 9), (160, 16, 2, 4), {"stride": (1, 3), "padding": ((1, 1), (3, 1))},
        ((13, 6, 3), (3, 3, 3))),
    "long sums": ((2, 160, 4, 24), (8, 160, 7, 7), {"stride": (2, 1), "padding": ((4, 4), (5, 0))}, ((4,), (18, 6))),
    "unreached taps": (
        (2, 40, 9, 46), (2, 40, 7, 4), {"stride": 4, "dilation": (3, 1), "padding": ((16, 9), (2, 2))},
        ((9,), (12, 20, 4, 8, 2))),
    "phases": (
        (1, 3, 53, 31), (160, 3, 5, 3), {"stride": (3, 4), "dilation": (1, 2), "padding": ((2, 1), (0, 2))},
        ((12, 15, 3, 21, 2), (28, 3))),
    "overlaps": ((1, 3, 64, 64), (512, 3, 16, 16), {"stride": 8, "padding": 4}, ((16, 48), (64,))),
    "patches": ((1, 3, 64, 64), (256, 3, 8, 8), {"stride": 8}, ((16, 48), (64,))),
    "small groups": ((1, 64, 40, 40), (64, 1, 3, 3), {"padding": 1, "groups": 64}, ((20, 20), (10, 30))),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("case", SAME_BITS)
def test_direct_has_the_bits_of_one_call(case, dtype):
    import convgrad_cy.dask as cd

    x_shape, w_shape, keywords, chunks = SAME_BITS[case]
    x, w, keywords = real(x_shape, dtype), real(w_shape, dtype), keywords | {"algorithm": "direct"}
    y = cd.conv(lazy(x, chunks), w, **keywords)
    expected = cg.conv(x, w, **keywords)
    assert bits(y.compute()) == bits(expected)
    dy = real(expected.shape, dtype, seed=1)
    dx = cd.conv_backward_data(lazy(dy, y.chunks[2:]), w, x_shape, **keywords)
    assert bits(dx.compute()) == bits(cg.conv_backward_data(dy, w, x_shape, **keywords))


@pytest.mark.tuning
def test_the_algorithm_is_chosen_for_the_whole():
    """Blocks must take Winograd's algorithm, or not, as one call on the whole arrays does."""
    import convgrad_cy.dask as cd

    shapes, small = [(4, 64, 64, 64), (64, 64, 3, 3)], [(1, 64, 10, 10), (64, 64, 3, 3)]
    assert cg.explain("conv", shapes, padding=1).family == "winograd"
    assert cg.explain("conv", small).family != "winograd"
    x, w = real(shapes[0]), real(shapes[1])
    y, other, direct = (
        cd.conv(lazy(x, ((8,) * 8,) * 2), w, padding=1, algorithm=algorithm).compute()
        for algorithm in ("auto", "winograd", "direct")
    )
    assert bits(y) == bits(other) != bits(direct)
    assert abs(y - direct).max() <= 4e-5 * abs(direct).max()
    few = x[:1, :8, :16, :16], w[:, :8]
    y = cd.conv(lazy(few[0], ((8, 8), (8, 8))), few[1], padding=1).compute()
    assert bits(y) == bits(cg.conv(*few, padding=1, algorithm="direct"))


def test_default_algorithm():
    """The setting at the time of the call must hold for the blocks."""
    import convgrad_cy.dask as cd

    x, w = real((4, 64, 64, 64)), real((64, 64, 3, 3))
    cg.set_default_algorithm("direct")
    try:
        y = cd.conv(lazy(x, ((32, 32), (64,))), w, padding=1)
    finally:
        cg.set_default_algorithm("auto")
    assert bits(y.compute()) == bits(cg.conv(x, w, padding=1, algorithm="direct"))


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name.endswith("float16") or name == "bfloat16"])
def test_sums_of_halves_are_rounded_once(dtype):
    """Partial sums of 2048 + 1 + 1 must not be rounded in between."""
    import convgrad_cy.dask as cd

    x = np.ones((3, 1, 1)).astype(integer_tensors(CUT["cut_1d"][0], dtype)[0].x.dtype)
    dy = np.array([2048, 1, 1]).reshape(3, 1, 1).astype(x.dtype)
    dw = cd.conv_backward_filter(lazy(x, ((1,),)), lazy(dy, ((1,),)), (1, 1, 1)).compute()
    assert dw.dtype == x.dtype and float(dw.item()) == float(np.float32(2050).astype(x.dtype))


def test_a_lazy_filter():
    """A filter may be a Dask array in one chunk."""
    import dask.array as da

    import convgrad_cy.dask as cd

    x, w = real((2, 3, 8)), real((4, 3, 3))
    y = cd.conv(lazy(x, ((4, 4),)), da.from_array(w, chunks=-1), algorithm="direct")
    assert bits(y.compute()) == bits(cg.conv(x, w, algorithm="direct"))


def test_an_empty_batch():
    import dask.array as da

    import convgrad_cy.dask as cd

    x, w = da.zeros((0, 3, 8), chunks=(1, 3, 4), dtype="float32"), real((4, 3, 3))
    y = cd.conv(x, w, padding=1)
    assert y.compute().shape == (0, 4, 8)
    assert not cd.conv_backward_filter(x, y, w.shape, padding=1).compute().any()


def test_results_have_the_byte_order_of_the_machine():
    import convgrad_cy.dask as cd

    x, w = real((2, 3, 8)), real((4, 3, 3))
    swapped = lazy(x.astype(x.dtype.newbyteorder()), ((4, 4),))
    y = cd.conv(swapped, w, algorithm="direct")
    assert y.dtype == y.compute().dtype == x.dtype and y.dtype.isnative
    assert bits(y.compute()) == bits(cg.conv(x, w, algorithm="direct"))
    dw = cd.conv_backward_filter(swapped, y, w.shape)
    assert dw.dtype == dw.compute().dtype == x.dtype and dw.dtype.isnative
