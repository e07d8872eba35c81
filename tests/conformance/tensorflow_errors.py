"""Refused calls of TensorFlow's three operations: each fault alone, and two at a time.

The reported one of two faults shows the order of the checks.
"""

from itertools import combinations

from conformance.tensorflow_values import arguments, draw_geometry, expression

#: Refused attributes, each for one reason. The first three kinds of reason have no fixed order upstream.
CHOICES = {
    "padding value": {"padding": '"same"'},
    "data_format value": {"data_format": '"nhwc"'},
}
ATTRIBUTES = {
    "strides no list": {"strides": '"1111"'},
    "strides no integers": {"strides": '["1", 1, 1, 1]'},
    "padding no string": {"padding": "None"},
    "use_cudnn_on_gpu no bool": {"use_cudnn_on_gpu": "0"},
    "explicit_paddings no list": {"explicit_paddings": "0"},
    "explicit_paddings no integers": {"explicit_paddings": "[[0, 0], [1, 1], [1, 1], [0, 0]]"},
    "data_format no string": {"data_format": "4"},
    "dilations no list": {"dilations": "np.ones(4, np.int64)"},
    "dilations no integers": {"dilations": "[1, None, 1, 1]"},
    "strides length": {"strides": "[1, 1, 1]"},
    "strides too long": {"strides": "(1, 1, 1, 1, 1)"},
    "strides batch": {"strides": "[2, 1, 1, 1]"},
    "strides channels": {"strides": "[1, 1, 1, 0]"},
    "strides zero": {"strides": "[1, 0, 1, 1]"},
    "strides negative": {"strides": "[1, 1, -1, 1]"},
    "strides range": {"strides": "[1, 2**31, 1, 1]"},
    "dilations length": {"dilations": "[1, 1, 1]"},
    "dilations none": {"dilations": "[]"},
    "dilations batch": {"dilations": "[2, 1, 1, 1]"},
    "dilations channels": {"dilations": "[1, 1, 1, 2]"},
    "dilations zero": {"dilations": "[1, 0, 1, 1]"},
    "dilations negative": {"dilations": "[1, 1, -2, 1]"},
    "dilations range": {"dilations": "[1, 2**31, 1, 1]"},
    "paddings length": {"padding": '"EXPLICIT"', "explicit_paddings": "[1]"},
    "paddings missing": {"padding": '"EXPLICIT"'},
    "paddings negative": {"padding": '"EXPLICIT"', "explicit_paddings": "[0, 0, -1, 0, 0, 0, 0, 1]"},
    "paddings batch": {"padding": '"EXPLICIT"', "explicit_paddings": "[1, 0, 0, 0, 0, 0, 0, 0]"},
    "paddings channels": {"padding": '"EXPLICIT"', "explicit_paddings": "[0, 0, 0, 0, 0, 0, 0, 2]"},
    "paddings with VALID": {"explicit_paddings": "[0, 0, 0, 0, 0, 0, 0, 0]"},
    "paddings with SAME": {"padding": '"SAME"', "explicit_paddings": "(0, 0, 1, 1, 1, 1, 0, 0)"},
}


def array(shape, dtype="float32"):
    return f't("{dtype}", {shape}, 1)'


def _tensors(kinds):
    return {f"{name} {value}": {name: value} for name, values in kinds.items() for value in values}


_NO_TENSORS = ["None", "{}", "[[1.0, 2.0], [3.0]]", "[None]", "np.array([None])", "np.ones(2, np.longdouble)"]
_WRONG_TYPES = [f'np.ones((1, 1, 1, 1), "{name}")' for name in ("int64", "uint8", "bool", "complex64", "int16")]
_NO_SIZES = ["None", '"a"', "[1.5, 4, 4, 2]", "3.0", "[None]", "[[1, 4], [4]]", "[2**63, 4, 4, 2]", "[1j] * 4"]
_WRONG_SIZES = ["4", "[[1, 4], [4, 2]]", "[]", "[3, 3, 2]", "[3, 3, 2, 3, 1]", "[2**31, 3, 2, 3]", "[2**31 - 1] * 4"]
_WRONG_SIZES += ["[1, -3, 4, 2]", "[2**31 - 1, 2**31 - 1, 2**31 - 1, 0]", "np.array([1, 2, 3])", "np.int32(4)"]
_OTHER_SIZES = ["[4, -4]", "[2, 4, 4, 2]", "[1, 4, 4, 3]", "[1, 5, 4, 2]", "[1, 4, 5, 2]", "[1, 1, 4, 2]"]
_OTHER_SIZES += ["[1, 4, 0, 2]", "[5, 4]", "[2, 2]", "[0, 4, 4, 2]"]
_OTHER_FILTER_SIZES = ["[3, 3, 0, 4]", "[3, 3, 3, 4]", "[3, 3, 2, 5]", "[2, 3, 2, 4]", "[3, 7, 2, 4]", "[3, 3]"]
_OTHER_FILTER_SIZES += ["[3, 3, 2, -4]"]
_RANKS = [array(shape) for shape in ((), (3,), (3, 3, 2), (1, 3, 3, 2, 3))]

#: For each operation, an accepted call, and tensors that are refused in it.
BASES = {
    "C": {"input": array((1, 4, 4, 2)), "filter": array((3, 3, 2, 4))},
    "I": {"input_sizes": "[1, 4, 4, 2]", "filter": array((3, 3, 2, 4)), "out_backprop": array((1, 2, 2, 4))},
    "F": {"input": array((1, 4, 4, 2)), "filter_sizes": "[3, 3, 2, 4]", "out_backprop": array((1, 2, 2, 4))},
}
for _base in BASES.values():
    _base |= {"strides": "[1, 1, 1, 1]", "padding": '"VALID"'}
_DOUBLES = array((1, 2, 2, 4), "float64")
TENSORS = {
    "C": _tensors(
        {
            "input": [
                *_NO_TENSORS,
                *_WRONG_TYPES,
                *_RANKS,
                array((1, 4, 4, 3)),
                array((1, 2, 4, 2)),
                array((1, 4, 0, 2)),
            ],
            "filter": [*_NO_TENSORS[:4], *_RANKS, '"a"', "1j"]
            + [array(shape) for shape in ((3, 3, 0, 4), (3, 3, 3, 4), (3, 3, 1, 3), (7, 3, 2, 4), (0, 3, 2, 4))],
        }
    ),
    "I": _tensors(
        {
            "input_sizes": [*_NO_SIZES, *_WRONG_SIZES, *_OTHER_SIZES],
            "filter": [*_NO_TENSORS, *_WRONG_TYPES, *_RANKS]
            + [array(shape) for shape in ((3, 3, 0, 4), (3, 3, 3, 4), (3, 3, 2, 5), (2, 3, 2, 4), (3, 7, 2, 4))],
            "out_backprop": [*_NO_TENSORS[:4], *_RANKS, '"a"', "1j", "2"]
            + [array(shape) for shape in ((2, 2, 2, 4), (1, 3, 2, 4), (1, 2, 1, 4), (1, 2, 2, 3), (1, 0, 2, 4))],
        }
    ),
    "F": _tensors(
        {
            "input": [*_NO_TENSORS, *_WRONG_TYPES, *_RANKS, 't("int32", (1, 4, 4, 2), 1)', "[1]"]
            + [
                array(shape)
                for shape in ((2, 4, 4, 2), (1, 5, 4, 2), (1, 4, 3, 2), (1, 2, 4, 2), (1, 4, 4, 3), (0, 4, 4, 2))
            ],
            "filter_sizes": [*_NO_SIZES, *_WRONG_SIZES, *_OTHER_FILTER_SIZES],
            "out_backprop": [*_NO_TENSORS[:4], *_RANKS, '"a"', "1j", "2"]
            + [array(shape) for shape in ((2, 2, 2, 4), (1, 3, 2, 4), (1, 2, 1, 4), (1, 2, 2, 3))],
        }
    ),
}
for _op, (_first, _second) in {"C": ("input", "filter"), "I": ("filter", "out_backprop")}.items():
    TENSORS[_op]["two types"] = {_first: f"T({BASES[_op][_first]})", _second: f"T({_DOUBLES})"}
TENSORS["F"]["two types"] = {"input": f"T({BASES['F']['input']})", "out_backprop": f"T({_DOUBLES})"}
BINDING = [
    "I(1)",
    "I()",
    "F(None, strides=1)",
    "C(foo=1)",
    "I(input_sizes=[1, 1], filter=1, out_backprop=1, strides=[1])",
    "F(input=1, filter_sizes=1, out_backprop=1, strides=1, padding=1, filters=3)",
    'C(input=1, filter=1, padding="VALID")',
]


def refused(op, *faults):
    """The accepted call with the given faults."""
    written = dict(BASES[op])
    for fault in faults:
        written |= fault
    return expression(op, written)


def _no_order(op, one, other):
    """Whether two faults are in one argument, or upstream has no fixed order for them, or aborts."""
    if set(one) & set(other):
        return True
    kinds = [fault for fault in (one, other) if fault in CHOICES.values() or set(fault.values()) & set(_WRONG_TYPES)]
    if len(kinds) == 2:
        return True
    both = one | other
    short = both.get("input_sizes") in ("[4, -4]", "[5, 4]", "[2, 2]")
    return op == "I" and short and both.get("filter") in (*_RANKS, *_WRONG_TYPES)


def errors(rng, pairs):
    """Every fault of every operation, and pairs of faults, which show the order of the checks."""
    calls = list(BINDING)
    for op, tensors in TENSORS.items():
        faults = [*CHOICES.values(), *ATTRIBUTES.values(), *tensors.values()]
        calls += [refused(op, fault) for fault in faults]
        couples = [couple for couple in combinations(faults, 2) if not _no_order(op, *couple)]
        calls += [refused(op, *couple) for couple in rng.sample(couples, pairs)]
    return calls + [draw_shapes(rng) for _ in range(pairs)]


def draw_faults(rng):
    """A call with one or two of the faults above."""
    op = rng.choice("CIF")
    faults = [*CHOICES.values(), *ATTRIBUTES.values(), *TENSORS[op].values()]
    while True:
        one, other = rng.sample(faults, 2)
        if rng.random() < 0.3:
            return refused(op, one)
        if not _no_order(op, one, other):
            return refused(op, one, other)


def draw_shapes(rng):
    """A random call with one size changed by one. It may still be accepted."""
    while True:
        op = rng.choice("CIF")
        geometry = draw_geometry(rng, op)
        shapes = {name: list(shape) for name, shape in geometry.shapes().items()}
        shape = shapes[rng.choice("xw" if op == "C" else "xwy")]
        shape[rng.randrange(4)] += rng.choice((-1, 1))
        empty = any(0 in sizes for sizes in shapes.values())
        # TensorFlow may abort the process: the plain kernel of the filter's gradient if a tensor is empty, XLA if the
        # input of a gradient has no channels.
        aborts = op != "C" and (shapes["x"][3] == 0 or (empty and op == "F"))
        if geometry.plain_for(op) and not aborts and min(map(min, shapes.values())) >= 0:
            shapes = {name: tuple(sizes) for name, sizes in shapes.items()}
            return expression(op, arguments(op, geometry.dtype, shapes, 1) | geometry.attributes())


def draw_error(rng):
    """A call that is nearly always refused."""
    return rng.choice((draw_faults, draw_shapes))(rng)
