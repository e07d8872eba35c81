"""Calls of MindSpore's two operators, as `replay` knows them. Run as a program, it records MindSpore's outcomes.

    python -m pip install mindspore==2.10.0
    python tests/conformance/record_mindspore.py

``B`` is Conv2DBackpropInput, ``T`` Conv2DTranspose, ``t`` a tensor by rule and ``ints`` a tensor of integers.
"""

import random
import re
import sys
from itertools import combinations
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    import replay
else:
    from conformance import replay

PATH = Path(__file__).with_name("mindspore.json")
ATTRIBUTES = (
    "name out_channel kernel_size pad_mode pad padding pad_list mode stride dilation group groups format data_format"
)

#: Refused constructions, each for one reason, in the order of MindSpore's checks.
REFUSED = {
    "signature": ["out_channel=2", "kernel_size=3", "2, 3, padding=1", "2, 3, out_channel=2", "2, 3, " + "1, " * 9],
    "too large": ["2, 3, stride=2**63", "2**63, 3", "2, 3, pad=-2**63 - 1", "2, 3, pad_list=[2**64]"],
    "out_channel": [f"{value}, 3" for value in ("0", "-1", "True", "2.0", "'2'", "None", "(2,)", "np.int64(2)")],
    "kernel_size": [f"2, {value}" for value in ("0", "-3", "True", "3.0", "'3'", "None", "[3, 3]", "np.int64(3)")]
    + [f"2, {value}" for value in ("np.array([3, 3])", "()", "(3,)", "(3, 3, 3)", "(1, 1, 3, 3)", "(3, 0)", "(3, 3.0)")]
    + [f"2, {value}" for value in ("(True, 3)", "(3, None)", "(np.int64(3), 3)", "('3', 3)")],
    "data_format": [f"2, 3, data_format={value}" for value in ("'nchw'", "'NCDHW'", "''", "None", "1", "b'NCHW'")]
    + ["2, 3, data_format=['NCHW']"],
    "NHWC": ["2, 3, data_format='NHWC'"],
    "stride": [f"2, 3, stride={value}" for value in ("0", "-1", "True", "2.0", "'2'", "None", "[1, 1]", "np.int64(1)")]
    + [f"2, 3, stride={value}" for value in ("()", "(1,)", "(1, 1, 1)", "(1,) * 5", "(0, 1)", "(1, 2.0)", "(1, False)")]
    + [f"2, 3, stride={value}" for value in ("(0, 1, 1, 1)", "(1, 0, 1, 1)", "(1, 1, 1, np.int64(1))", "np.ones(2)")],
    "dilation": [f"2, 3, dilation={value}" for value in ("0", "-2", "False", "1.5", "'1'", "None", "[2, 2]", "{1}")]
    + [f"2, 3, dilation={value}" for value in ("()", "(1,)", "(1, 1, 1)", "(1, 0)", "(1, None)", "(1, -1, 1, 1)")],
    "pad type": [f"2, 3, pad={value}" for value in ("1.0", "True", "'1'", "None", "[0, 0, 0, 0]", "np.int64(1)")]
    + ["2, 3, pad_mode='pad', pad=[1, 1, 1, 1]"],
    "pad_mode type": [f"2, 3, pad_mode={value}" for value in ("None", "1", "b'pad'", "('pad',)", "True")],
    "pad length": [f"2, 3, pad={value}" for value in ("()", "(0,)", "(0, 0)", "(0, 0, 0)", "(0,) * 5")]
    + ["2, 3, pad_mode='pad', pad=(1, 1)", "2, 3, pad_mode='same', pad=(1,) * 6"],
    "pad_mode": [f"2, 3, pad_mode={value}" for value in ("'full'", "'CONSTANT'", "''", "' pad'", "'same_upper'")],
    "pad not zero": [f"2, 3, pad={value}" for value in ("1", "-1", "(0, 0, 0, 1)", "(None,) * 4", "(0.5, 0, 0, 0)")]
    + [f"2, 3, pad_mode={value}, pad=1" for value in ("'same'", "'PAD'", "'Same'", "'VALID'")],
    "pad item": [f"2, 3, pad_mode='pad', pad={value}" for value in ("-1", "(0, 0, 0, -2)", "(1.0, 1, 1, 1)")]
    + [f"2, 3, pad_mode='pad', pad={value}" for value in ("(1, True, 1, 1)", "(1, 1, None, 1)", "(np.int64(1),) * 4")],
    "mode": [f"2, 3, mode={value}" for value in ("-1", "4", "True", "1.0", "'1'", "None", "(1,)", "np.int64(1)")]
    + ["2, 3, mode=0", "2, 3, mode=2", "2, 3, mode=3"],
    "group": [f"2, 3, group={value}" for value in ("0", "-1", "False", "1.0", "'1'", "None", "(1,)", "np.int64(1)")],
    "pad_list": [f"2, 3, pad_list={value}" for value in ("(-2, 0, 0, 0)", "(0.0,)", "(True,)", "'valid'", "1", "2.5")]
    + [f"2, 3, pad_list={value}" for value in ("(None,)", "((1,),)", "[0, 0, 0, -3]", "(np.int64(1),)")]
    + [
        "2, 3, pad_list=np.array([1])",
        "2, 3, pad_list=np.array([1, 1])",
        "2, 3, pad_mode='pad', pad_list=(1, 1, 1, '1')",
    ],
}
#: Constructions that are accepted.
ACCEPTED = [
    "2, 3", "99, (1, 2)", "2, 3, 'same'", "2, 3, 'PAD', 0", "2, 3, 'pAd', (0, 0, 0, 0), [1, 2, 3, 4]", "2, 3, 'sAmE'",
    "2, 3, 'pad', 2", "2, 3, 'pad', (1, 2, 3, 4)", "2, 3, pad=(0, 0.0, False, 0)", "2, 3, stride=2, dilation=(1, 2)",
    "2, 3, stride=(3, 5, 1, 2), dilation=(7, 1, 1, 1)", "2, 3, pad_list=()", "2, 3, pad_list=''", "2, 3, pad_list={}",
    "2, 3, pad_list=0", "2, 3, pad_list=(1,)", "2, 3, pad_list=b'ab'", "2, 3, pad_list=(-1, 0)",
    "2, 3, 'pad', 1, None, 1, 2, 3, 4, 'NCHW'", "2, 3, pad_list=range(2)", "2, 3, group=2**63 - 1",
]  # fmt: skip


def refused_twice(*texts):
    """The call with the arguments of both refused ones by name, to see the first reason; none if they clash."""
    if all(text.startswith("2, 3, ") and "=" in text for text in texts):
        arguments = ", ".join(text.removeprefix("2, 3, ") for text in texts)
        names = re.findall(r"(\w+)=", arguments)
        if len(set(names)) == len(names) and "out_channel" not in names:
            yield f"T(2, 3, {arguments})"


def construction_calls():
    for reason, texts in REFUSED.items():
        for i, text in enumerate(texts):
            yield f"{'BT'[i % 2]}({text})"
            if reason not in ("signature", "too large"):
                yield f"{'TB'[i % 2]}({text})"
    for one, two in combinations(REFUSED.values(), 2):
        yield from refused_twice(two[-1], one[0])
    for text in ("0, 0", "0, 3, stride=0", "2, 0, data_format=''", "2, (0, 1), mode=7", "True, 0.5, pad=7, group=0"):
        yield f"B({text})"
    for text in ACCEPTED:
        for op in "BT":
            yield f"repr({op}({text}))"
            yield f"[getattr({op}({text}), name) for name in {ATTRIBUTES!r}.split()]"


def call_errors():
    """Calls that are refused, or accepted although they look odd."""
    good = ['t("float32", (1, 2, 3, 3), 1)', 't("float32", (2, 3, 3, 3), 2)', "(1, 3, 5, 5)"]
    douts = ["t('float32', (2, 3, 3), 1)", "t('float32', (), 1)", "t('float32', (1, 2, 3, 3, 1), 1)", "[[1.0]]", "None"]
    douts += [f"t('{name}', (1, 2, 3, 3), 1)" for name in ("float16", "float64", "int64", "bool", "int8", "complex64")]
    douts += [f"t('float32', {s}, 1)" for s in ((2, 2, 3, 3), (1, 3, 3, 3), (1, 2, 4, 3), (1, 2, 3, 2), (1, 2, 0, 3))]
    weights = ["t('float32', (2, 3, 3), 2)", "t('float32', (2, 3, 3, 3, 1), 2)", "None", "2.0", "'w'"]
    weights += [f"t('{name}', (2, 3, 3, 3), 2)" for name in ("float16", "float64", "int64", "uint8", "bool")]
    shapes = ((3, 3, 3, 3), (2, 2, 3, 3), (2, 3, 2, 3), (2, 3, 3, 5), (2, 3, 0, 3), (0, 3, 3, 3), (2, 0, 3, 3))
    weights += [f"t('float32', {shape}, 2)" for shape in shapes]
    shapes = ((1, 3, 5), (1, 3, 5, 5, 1), (2, 3, 5, 5), (0, 3, 5, 5), (1, 2, 5, 5), (1, 0, 5, 5), (1, 3, 6, 5))
    shapes += (
        (1, 3, 5, 4),
        (1, 3, 0, 5),
        (1, 3, 5, -1),
        (1, 3, 5, -5),
        (1, 3, 5, 5.0),
        (1, 3, 5, True),
        (1, 3, 5, None),
    )
    sizes = [*map(str, shapes), "(1, 3, 5, '5')", "(1, 3, 5, 2**63)", "()", "[]", "None", "5", "'abcd'", "{1}"]
    sizes += ["ints([[1, 3, 5, 5]])", "ints(5)", "t('float32', (4,), 1)", "(np.int64(1), 3, 5, 5)"]
    for i, options in enumerate((douts, weights, sizes)):
        for j, option in enumerate(options):
            yield f"{'BT'[j % 2]}(2, 3)({', '.join([*good[:i], option, *good[i + 1 :]])})"
    both = "t('{0}', (1, 2, 3, 3), 1), t('{0}', (2, 3, 3, 3), 2), (1, 3, 5, 5)"
    for name in ("float64", "int32", "int8", "int16", "int64", "uint8", "bool", "complex64", "complex128"):
        yield f"T(2, 3)({both.format(name)})"
    for arguments in ("", good[0], ", ".join(good[:2]), ", ".join([*good, "1"]), "dout=1", f"{good[0]}, weight=1"):
        yield f"B(2, 3)({arguments})"
    for pads in ("(1, 1)", "[1] * 5", "()", "0", "''", "False", "range(4)", "{1, 2, 3, 4}", "b'abcd'", "(1, 1, 1, 1)"):
        yield f"T(2, 3, 'pad', 0, {pads})({', '.join(good)})"
    for attributes in ("group=2", "group=3", "stride=2", "dilation=2", "pad_mode='same'", "pad_mode='pad', pad=1"):
        yield f"T(2, 3, {attributes})({', '.join(good)})"
    yield "T(2, 3, group=2)(t('float32', (1, 3, 3, 3), 1), t('float32', (3, 2, 3, 3), 1), (1, 4, 5, 5))"
    yield "T(2, 3, group=2)(t('float32', (1, 4, 3, 3), 1), t('float32', (5, 2, 3, 3), 1), (1, 4, 5, 5))"
    yield "T(2, 3)(t('float64', (1, 2, 3), 1), 5, 'size')"
    yield "T(2, 3)(t('float64', (1, 2, 3, 3), 1), t('float64', (2, 9, 9), 1), (9, 9))"


def random_call(draw):
    """A call with random attributes and fitting shapes, sometimes with a mistake, or a refused construction."""
    if draw.random() < 0.15:
        texts = [draw.choice(draw.choice(list(REFUSED.values()))) for _ in range(2)]
        return next(refused_twice(*texts), f"{draw.choice('BT')}({texts[0]})")
    group, batch = draw.choice((1, 1, 1, 2, 3)), draw.choice((0, 1, 1, 2, 2, 3))
    x_channels, y_channels = group * draw.randint(1, 3), group * draw.randint(1, 4)
    pads, attributes = [0, 0, 0, 0], {}
    mode = draw.choice(("valid", "same", "pad"))
    if mode == "pad":
        pads = [draw.randint(0, 3) for _ in range(4)] if draw.random() < 0.6 else [draw.randint(0, 3)] * 4
        value = pads[0] if len(set(pads)) == 1 else tuple(pads)
        attributes["pad"] = value
        if draw.random() < 0.3:
            other = draw.choice(((1, 2, 0, 3), [0, 1, 2, 0], (3, -1, 0, 0), [-1], (0, 0, 0, 0), (1, 1)))
            attributes["pad_list"] = other
            pads = pads if -1 in other or len(other) != 4 else list(other)
    elif draw.random() < 0.1:
        attributes["pad_list"] = draw.choice(((), (1, 2), [4, 4, 4, 4]))
    x, y, kernel, steps, gaps = [], [], [], [], []
    for i in range(2):
        taps, stride, gap = draw.randint(1, 5), draw.choice((1, 1, 2, 2, 3, 4)), draw.choice((1, 1, 1, 2, 3))
        size = draw.choice((0, 1, 2, 3, *range(4, 13)))
        extent = (taps - 1) * gap + 1
        outputs = -(-size // stride)
        begin, end = pads[2 * i : 2 * i + 2]
        if mode == "same":
            begin, end = 0, max(0, (outputs - 1) * stride + extent - size)
        outputs = int((size + begin + end - extent) / stride) + 1  # rounds toward zero, as MindSpore does
        for values, value in zip((x, y, kernel, steps, gaps), (size, max(0, outputs), taps, stride, gap), strict=True):
            values.append(value)
    for name, values in (("stride", steps), ("dilation", gaps)):
        if values != [1, 1]:
            forms = [tuple(values), (draw.randint(1, 3), draw.randint(1, 3), *values)]
            attributes[name] = values[0] if values[0] == values[1] else draw.choice(forms)
    attributes |= {"group": group} if group > 1 else {}
    dout, weight, size = [batch, y_channels, *y], [y_channels, x_channels // group, *kernel], [batch, x_channels, *x]
    if draw.random() < 0.2:
        wrong = draw.choice((dout, weight, size))
        wrong[draw.randrange(4)] += draw.choice((-1, 1, 1, 2))
        wrong[:] = [max(0, entry) for entry in wrong]
    if draw.random() < 0.03:
        attributes["group"] = draw.randint(1, 4)
    spelling = draw.choice((mode, mode, mode.upper(), mode.title())) if not attributes.get("pad") else mode
    arguments = [str(draw.choice((y_channels, 99))), repr(draw.choice((tuple(kernel), 1))), repr(spelling)]
    arguments += [f"{name}={value!r}" for name, value in attributes.items()]
    kind = draw.choice(("float32", "float32", "float32", "float16"))
    other = kind if draw.random() > 0.02 else draw.choice(("float16", "float32", "int32"))
    special = draw.choice(("", "", "", "", "", ", np.nan", ", np.inf")) if 0 not in dout else ""
    seeds = draw.randrange(999), draw.randrange(999)
    tensors = f't("{kind}", {tuple(dout)}, {seeds[0]}{special}), t("{other}", {tuple(weight)}, {seeds[1]})'
    asked = draw.choice((str(tuple(size)), str(tuple(size)), str(size), f"ints({size})"))
    return f"{draw.choice('BT')}({', '.join(arguments)})({tensors}, {asked})"


def calls():
    """All recorded calls."""
    yield from construction_calls()
    yield from call_errors()
    draw = random.Random("mindspore")
    for _ in range(600):
        yield random_call(draw)


def shorten(message):
    """A message without the C++ call stack."""
    return message.split("\n\n----")[0].strip()[:600]


def real():
    """The names that the expressions use, from MindSpore itself."""
    import mindspore as ms

    ms.set_device("CPU")
    return {
        "B": ms.ops.Conv2DBackpropInput,
        "T": ms.ops.Conv2DTranspose,
        "t": lambda *rule: ms.Tensor(replay.tensor(*rule)),
        "ints": lambda sizes: ms.Tensor(np.array(sizes, np.int64)),
    }


def evaluate_real(expression, names):
    """MindSpore's outcome of a call."""
    return replay.evaluate(expression, names, lambda result: result.asnumpy(), shorten)


def main():
    import mindspore

    names = real()
    outcomes = {expression: evaluate_real(expression, names) for expression in calls()}
    replay.save(PATH, f"mindspore {mindspore.__version__}, CPU", outcomes)
    kinds = ["value" if o.array is not None else o.error or "text" for o in outcomes.values()]
    print({kind: kinds.count(kind) for kind in sorted(set(kinds))}, file=sys.stderr)


if __name__ == "__main__":
    main()
