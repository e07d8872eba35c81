"""Mistakes in calls of oneDNN Graph's convolutions: changes of a correct call."""

from onednn_random import TAKES


def _set(name, value):
    def change(rng, call):
        call.attributes[name] = value(rng, call.attributes.get(name)) if callable(value) else value

    return change


def _without(*names):
    def change(rng, call):
        for name in names:
            call.attributes.pop(name, None)

    return change


def _both(*changes):
    def change(rng, call):
        for part in changes:
            part(rng, call)

    return change


def _member(new):
    """A change of one member of a list."""

    def change(rng, values):
        values, i = list(values), rng.randrange(len(values))
        values[i] = new(values[i])
        return values

    return change


def _tensor(which, axis, new):
    """A change of one entry of a tensor's shape."""

    def change(rng, call):
        shape = call.tensors[which][1] = list(call.tensors[which][1])
        i = rng.randrange(len(shape)) if axis is None else axis
        shape[i] = new(shape[i])

    return change


def _whole(which, new):
    """A change of a tensor's whole shape."""

    def change(rng, call):
        call.tensors[which][1] = new(call.tensors[which][1])

    return change


def _dtypes(*names):
    def change(rng, call):
        call.tensors = [[name or dtype, shape] for name, (dtype, shape) in zip(names, call.tensors, strict=True)]

    return change


def _shape(change):
    """A change of the attribute with the result's shape, or of a tensor if there is no such attribute."""

    def changed(rng, call):
        name = TAKES[call.kind][1]
        if name is None:
            call.tensors[1][1] = change(rng, call.tensors[1][1])
        else:
            call.attributes[name] = change(rng, call.attributes[name])

    return changed


def _shape_tensor(dtype, keep):
    def change(rng, call):
        name = TAKES[call.kind][1]
        if name is not None:
            shape = call.attributes[name] if keep else call.attributes.pop(name)
            call.more.append(f"np.array({shape}, np.{dtype})")

    return change


def _tensors(change):
    def changed(rng, call):
        call.tensors = change(call.tensors)

    return changed


LISTS = ("strides", "pads_begin", "pads_end", "dilations")
#: The mistakes. Some leave a correct call, and the library tells which.
MISTAKES = [
    *(_without(name) for name in LISTS),
    *(_set(name, lambda rng, value: value[1:] + value + [1]) for name in LISTS),
    *(_set(name, lambda rng, value: [*value, 1]) for name in LISTS),
    *(_set(name, lambda rng, value: [float(member) for member in value]) for name in LISTS),
    *(_set(name, "1") for name in (*LISTS, "groups")),
    *(_set(name, []) for name in LISTS),
    *(_set(name, _member(lambda member: -1 - member)) for name in LISTS[1:3]),
    *(_set(name, _member(lambda member: member + 1)) for name in (*LISTS, *LISTS)),
    _both(_set("auto_pad", "VALID"), _set("pads_begin", _member(lambda member: -1))),
    _both(_set("auto_pad", "SAME_UPPER"), _set("pads_end", lambda rng, value: [*value, 0])),
    _set("dilations", _member(lambda member: -member)),
    _set("groups", 0),
    _set("groups", -2),
    _set("groups", lambda rng, value: (value or 1) + 1),
    _set("groups", lambda rng, value: (value or 1) * 2),
    _set("groups", 1.0),
    *(_set("auto_pad", text) for text in ("SAME", "Same_Upper", "NONE", "EXPLICIT", "", "none", "valid", "same_lower")),
    _set("auto_pad", 1),
    _set("auto_pad", "SAME_UPPER"),
    _set("auto_pad", "VALID"),
    _both(_set("auto_pad", "VALID"), _without("pads_begin", "pads_end")),
    *(_set("data_format", text) for text in ("NCHW", "ncx", "XNC", "", "NXC", "NCX")),
    *(_set("weights_format", text) for text in ("OIHW", "oix", "", "XIO", "OIX", "XOI", "IOX")),
    _set("data_format", 1),
    _set("weights_format", 1),
    _set("alpha", 1.0),
    _set("dst_shape", [1, 1, 1]),
    _set("weights_shape", [1, 1, 1]),
    _without("dst_shape", "weights_shape"),
    _set("output_padding", lambda rng, value: [0] * 2),
    _set("output_padding", lambda rng, value: [1]),
    _set("output_padding", lambda rng, value: [1, 1]),
    _set("output_padding", lambda rng, value: [3, 3]),
    _set("output_padding", lambda rng, value: [-1, 0]),
    _shape(lambda rng, shape: shape[1:]),
    _shape(lambda rng, shape: shape[max(0, min(2, len(shape) - 2)) :]),  # a single entry destroys the library's heap
    _shape(lambda rng, shape: [*shape, 1]),
    _shape(lambda rng, shape: [1, *shape]),
    *(_shape(_member(lambda size: size + 1)) for _ in range(4)),
    _shape(_member(lambda size: size + 3)),
    _shape(_member(lambda size: 0)),
    _shape_tensor("int32", False),
    _shape_tensor("int32", True),
    _shape_tensor("float32", True),
    *(_tensor(which, axis, lambda size: size + 1) for which in (0, 1) for axis in (0, 1, -1, None, None)),
    *(_tensor(which, axis, lambda size: size + 4) for which in (0, 1) for axis in (0, 1, -1)),
    *(_tensor(which, axis, lambda size: 0) for which in (0, 1) for axis in (0, 1, -1, None)),
    _tensors(lambda tensors: tensors[:1]),
    _tensors(lambda tensors: tensors * 2),
    *(_whole(which, lambda shape: shape[1:]) for which in (0, 1)),
    *(_whole(which, lambda shape: [1, *shape]) for which in (0, 1)),
    *(_dtypes(None, name) for name in ("int8", "float64", "int32")),
    *(_dtypes(name, name) for name in ("float64", "int32")),
    _dtypes("float32", "bfloat16"),
]
