"""``python -m convgrad_cy explain`` reads a layer in letters or shapes as the functions read it."""

import json

import numpy as np
import pytest
from commands import assert_one_line, status_of

import convgrad_cy as cg

#: The functions of each kind of layer. They compute from x, w and y of the layer: (arrays, keyword of a shape).
CONV = ("conv", "conv_backward_data", "conv_backward_filter", "conv_backward")
CONV_TRANSPOSE = tuple(name.replace("conv", "conv_transpose") for name in CONV)
#: One layer in the letters of benchdnn and in options: (kind, letters, options).
SAME_LAYER = [
    ("conv", "mb8ic64ih56oc32kh3sh2ph1", "--x 8,64,56,56 --w 32,64,3,3 --stride 2 --padding 1:0,1:0"),
    ("conv", "mb1g2ic4ih9iw8oc6kh3kw2dh1dw0", "--x 1,4,9,8 --w 6,2,3,2 --dilation 2,1 --groups 2"),
    ("conv", "mb1ic4ih8oc4kh3dh0", "--x 1,4,8,8 --w 4,4,3,3"),
    ("conv", "mb1ic4iw9oc4ow9kw4", "--x 1,4,9 --w 4,4,4 --padding 1:2"),
    ("conv", "mb1ic4id5oc4kd3pd1", "--x 1,4,5,5,5 --w 4,4,3,3,3 --padding same"),
    ("conv_transpose", "mb2ic6ih8oc4kh4sh2ph1", "--x 2,6,8,8 --w 6,4,4,4 --stride 2 --padding 1"),
    ("conv_transpose", "mb2ic6ih8oc4oh17kh4sh2ph1", "--x 2,6,8,8 --w 6,4,4,4 --stride 2 --padding 1:0,1:0"),
    (
        "conv_transpose",
        "mb2ic6iw8oc4ow19kw4sw2pw0",
        "--x 2,6,8 --w 6,4,4 --stride 2 --output-padding 1",
    ),
    (
        "conv_transpose",
        "g2mb2ic6iw8oc4ow10kw3dw2pw0",
        "--x 2,6,8 --w 6,2,3 --groups 2 --dilation 3 --padding 0:4",
    ),
    (
        "conv_transpose",
        "g2mb2ic6iw8oc4ow17kw3dw3pw0",
        "--x 2,6,8 --w 6,2,3 --groups 2 --dilation 4 --output-padding 1",
    ),
]


def explained(capsys, *arguments):
    """The objects that the command prints with --json, one for each result."""
    assert status_of("explain", *arguments, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, list) == arguments[0].endswith("backward")
    return found if isinstance(found, list) else [found]


def per_axis(value, rank):
    return list(value) if isinstance(value, list) else [value] * rank


@pytest.mark.parametrize("forward, letters, options", SAME_LAYER)
def test_letters_and_options_say_the_same(capsys, forward, letters, options):
    """Letters and options must give the shapes of a call with arrays, for each function of the layer."""
    for function in CONV if forward == "conv" else CONV_TRANSPOSE:
        in_letters = explained(capsys, function, "--problem", letters)
        in_options = explained(capsys, function, *options.split())
        layer, other = in_letters[0]["layer"], in_options[0]["layer"]
        assert {name: layer[name] for name in "xwy"} == {name: other[name] for name in "xwy"}
        for name in {"stride", "dilation", "output_padding"} & set(layer):
            assert layer[name] == per_axis(other[name], len(layer["x"]) - 2)
        plans = [[{**each, "layer": None} for each in found] for found in (in_letters, in_options)]
        assert plans[0] == plans[1]
        shapes = {"x": layer["x"], "w": layer["w"], "y": layer["y"]}
        results = {"data": "x", "filter": "w", "backward": "xw"}.get(function.rpartition("_")[2], "y")
        assert [each["shape"] for each in in_letters] == [shapes[name] for name in results]
    x, w = (np.ones(layer[name], np.float32) for name in "xw")
    names = ("stride", "padding", "dilation", "groups", "output_padding")
    y = getattr(cg, forward)(x, w, **{name: layer[name] for name in names if name in layer})
    assert list(y.shape) == layer["y"]


@pytest.mark.parametrize(
    "formats, x, w, y",
    [
        (("NHWC", "HWIO"), "2,9,8,4", "3,2,4,6", [2, 9, 8, 6]),
        (("NXC", "OIX"), "2,9,8,4", "6,4,3,2", [2, 9, 8, 6]),
        (("nchw", "xio"), "2,4,9,8", "3,2,4,6", [2, 6, 9, 8]),
    ],
)
def test_formats(capsys, formats, x, w, y):
    """Shapes must be read in the order of the formats. Letters have no order."""
    formats = ("--data-format", formats[0], "--filter-format", formats[1])
    found = explained(capsys, "conv", "--x", x, "--w", w, "--padding", "1:1,0:1", *formats)[0]
    assert found["layer"]["y"] == found["shape"] == y
    found = explained(capsys, "conv", "--problem", "mb2ic4ih9iw8oc6oh9ow8kh3kw2", *formats)[0]["layer"]
    assert [",".join(map(str, found[name])) for name in "xw"] == [x, w] and found["y"] == y


def test_every_keyword_reaches_the_function(capsys):
    words = "--stride 2,1 --padding 0:1,1:2 --dilation 1,2 --groups 2 --algorithm direct --precision ieee"
    found = explained(capsys, "conv", "--x", "2,4,9,8", "--w", "6,2,3,2", "--dtype", "float64", *words.split())[0]
    keywords = {"stride": (2, 1), "padding": ((0, 1), (1, 2)), "dilation": (1, 2), "groups": 2}
    keywords |= {"algorithm": "direct", "precision": "ieee"}
    expected = cg.explain("conv", [(2, 4, 9, 8), (6, 2, 3, 2)], "float64", **keywords)
    assert json.loads(json.dumps(keywords)).items() <= found.pop("layer").items()
    assert found == json.loads(json.dumps(expected._asdict()))


def test_the_report_begins_with_what_was_understood(capsys):
    assert status_of("explain", "conv", "--problem", "mb1ic4ih8oc4kh3dh1", "--algorithm", "direct") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:13] == [
        "y = conv(x, w) with",
        "  x: 1,4,8,8",
        "  w: 4,4,3,3",
        "  y: 1,4,4,4",
        "  stride: 1,1",
        "  padding: 0:0,0:0",
        "  dilation: 2,2",
        "  groups: 1",
        "  data_format: NCX",
        "  filter_format: OIX",
        "  algorithm: direct",
        "  precision: high",
        "",
    ]
    assert lines[13] == "conv -> float32, 1 x 4 x 4 x 4"


def test_the_report_can_be_given_as_options(capsys):
    options = "--x 2,6,8,7 --w 6,2,3,2 --groups 2 --stride 2,3 --padding 1:0,0:1 --output-padding 1,2"
    assert status_of("explain", "conv_transpose", *options.split()) == 0
    report = capsys.readouterr().out
    understood = dict(line.strip().split(": ") for line in report.partition("\n\n")[0].splitlines()[1:])
    del understood["y"]
    again = [word for name, value in understood.items() for word in (f"--{name.replace('_', '-')}", value)]
    assert status_of("explain", "conv_transpose", *again) == 0
    assert capsys.readouterr().out.splitlines()[:6] == report.splitlines()[:6]


@pytest.mark.parametrize("forward, x", [("conv", "2 x 4 x 9"), ("conv_transpose", "2 x 6 x 9")])
def test_both_gradients_have_a_report_each(capsys, forward, x):
    assert status_of("explain", f"{forward}_backward", "--x", x.replace(" x ", ","), "--w", "6,4,3") == 0
    parts = capsys.readouterr().out.split("\n\n")
    starts = (
        f"y = {forward}(x, w) with\n",
        f"{forward}_backward_data -> float32, {x}\n",
        f"{forward}_backward_filter -> float32, 6 x 4 x 3\n",
    )
    assert len(parts) == 3 and all(part.startswith(start) for part, start in zip(parts, starts, strict=True))


def test_an_algorithm_that_only_a_gradient_has(capsys):
    """The shape of y must be found without the algorithm, which only a gradient has."""
    layer = ("--x", "1,64,56,56", "--w", "64,64,3,3", "--stride", "2", "--padding", "1", "--algorithm", "winograd")
    assert explained(capsys, "conv_backward_data", *layer)[0]["family"] == "winograd"
    assert status_of("explain", "conv", *layer) == 2
    assert_one_line(
        capsys.readouterr().err, "algorithm must be 'auto' or 'direct' for these taps, strides and dilations"
    )


LETTERS = [
    ("mb1ic4ih8oc4kh3sh0", "argument --problem: sh must be at least 1, not 0"),
    ("mb1g0ic4ih8oc4kh3", "argument --problem: g must be at least 1, not 0"),
    ("mb1ic4ih0oc4kh3", "argument --problem: ih must be at least 1, not 0"),
    ("mb1ic4ih8oc4kh0", "argument --problem: kh must be at least 1, not 0"),
    ("mb1ic4ih8oc4oh0kh3", "argument --problem: oh must be at least 1, not 0"),
    ("ic4ih8oc4kh3", "argument --problem: mb must be given"),
    ("mb1ih8oc4kh3", "argument --problem: ic must be given"),
    ("mb1ic4oc4kh3", "argument --problem: iw must be given"),
    ("mb1ic4ih8oc4kh3kd3", "argument --problem: kd must be left out where there is no id"),
    ("mb1mb2ic4ih8oc4kh3", "argument --problem: mb must be given once"),
    ("mb1g3ic4ih8oc3kh3", "argument --problem: ic must be a multiple of g = 3, not 4"),
    ("mb1ic4ih2oc4kh5", "argument --problem: no convolution has these sizes along h: ih is 2, oh is -2"),
    ("mb1ic4ih8oc4oh3kh3", "argument --problem: no convolution has these sizes along h: ih is 8, oh is 3"),
    ("mb1ic4ih8oc4x3", "argument --problem: must be in the syntax of benchdnn"),
    ("mb1ic4ih٣oc4", "argument --problem: must be in the syntax of benchdnn"),
    ("mb1ic4ih" + "9" * 5000 + "oc4kh3", "argument --problem: "),
    ("mb1ic4ih" + "9" * 50 + "oc4kh3", ""),
]


@pytest.mark.parametrize("letters, said", LETTERS, ids=range(len(LETTERS)))
def test_bad_letters(capsys, letters, said):
    assert status_of("explain", "conv", "--problem", letters) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert_one_line(printed.err, said)


def test_a_transposed_size_that_no_output_padding_gives(capsys):
    assert status_of("explain", "conv_transpose", "--problem", "mb1ic4ih8oc4oh20kh4sh2ph0") == 2
    assert_one_line(capsys.readouterr().err, "no transposed convolution has these sizes along h: ih is 8, oh is 20")


SHAPES = ("--x", "2,4,9,9", "--w", "6,4,3,3")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["conv"], "one of the arguments --problem --x is required"),
        (["conv", "--x", "2,4,9"], "argument --w must be given with --x"),
        (["conv", "--x", "2,4,9", "--problem", "mb1"], "argument --problem: not allowed with argument --x"),
        (
            ["conv", "--problem", "mb1ic4ih8oc4kh3", "--stride", "2"],
            "argument --stride must be left out with --problem",
        ),
        (["conv", "--problem", "mb1ic4ih8oc4kh3", "--w", "4,4,3"], "argument --w must be left out with --problem"),
        (["conv", "--problem", "mb1ic4ih8oc4kh3", "--data-format", "NWC"], "error: data_format must be one of 'NCX'"),
        (
            ["conv", "--x", "2,4,a", "--w", "6,4,3"],
            "argument --x: must be whole numbers such as 8,64,56,56, not '2,4,a'",
        ),
        (["conv", "--x", "2,-4,9", "--w", "6,4,3"], "argument --x: must be whole numbers"),
        (["conv", "--x", "2,4", "--w", "6,4"], "x must have 3 to 5 axes"),
        (["conv", "--x", "2,5,9", "--w", "6,4,3"], "x.shape[1] must be groups * w.shape[1] = 1 * 4, not 5"),
        (["conv", *SHAPES, "--stride", "1.5"], "argument --stride: must be whole numbers such as 2 or 2,1, not '1.5'"),
        (["conv", *SHAPES, "--stride", "0"], "stride must be at least 1, not 0"),
        (["conv", *SHAPES, "--stride", "1,1,1"], "stride must have one entry for each spatial axis, 2"),
        (["conv", *SHAPES, "--padding", "0:1,2"], "padding[1] must be a (begin, end) pair"),
        (["conv", *SHAPES, "--padding", "1:"], "argument --padding: must be 1, 1,2, 0:1,1:1, same or valid"),
        (["conv", *SHAPES, "--padding", "some"], "padding must be one of 'valid', 'same'"),
        (["conv", *SHAPES, "--groups", "0"], "groups must be at least 1, not 0"),
        (["conv", *SHAPES, "--output-padding", "1"], "conv has no keyword 'output_padding'"),
        (["conv", *SHAPES, "--algorithm", "fft"], "argument --algorithm: invalid choice: 'fft'"),
        (["conv", "--x", "9" * 30 + ",4,9", "--w", "6,4,3"], ""),
        (["conv", "--x", "1000000,1000000,1000,10", "--w", "1,1000000,1,1"], "Unable to allocate"),
        (["convolve", *SHAPES], "argument FUNCTION: invalid choice: 'convolve'"),
    ],
)
def test_bad_options(capsys, arguments, said):
    assert status_of("explain", *arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert_one_line(printed.err, said)
