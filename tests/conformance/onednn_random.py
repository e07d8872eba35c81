"""Random calls of oneDNN Graph's convolutions that its documents allow."""

#: The tensors of y = conv(x, w) that an operation takes, in its order, and the name of the third tensor's shape.
TAKES = {
    "Convolution": ("xw", None),
    "ConvolutionBackwardData": ("yw", "dst_shape"),
    "ConvolutionBackwardWeights": ("xy", "weights_shape"),
    "ConvTranspose": ("yw", None),
    "ConvTransposeBackwardData": ("xw", None),
    "ConvTransposeBackwardWeights": ("yx", "weights_shape"),
}
AUTO_PADS = (None, None, None, "None", "VALID", "SAME_UPPER", "SAME_LOWER")


class Call:
    """One call: its kind, its attributes, its tensors as [dtype, shape], and further tensors."""

    def __init__(self, kind, attributes, tensors):
        self.kind, self.attributes, self.tensors, self.more = kind, attributes, tensors, []

    def expression(self, seed):
        """The call as an expression for `replay.evaluate`."""
        attributes = ", ".join(f"{name}={value!r}" for name, value in self.attributes.items())
        tensors = [f"t({dtype!r}, {tuple(shape)}, {seed + i})" for i, (dtype, shape) in enumerate(self.tensors)]
        return f"{self.kind}({attributes})({', '.join(tensors + self.more)})"


def correct_call(rng, kind):
    """A call of a kind that the documents allow."""
    rank = rng.choice((1, 1, 2, 2, 2, 3))
    auto_pad = rng.choice(AUTO_PADS)
    groups, outs, ins = rng.choice((1, 1, 1, 2, 3, 4)), rng.randint(1, 4), rng.randint(1, 4)
    if kind == "ConvolutionBackwardData" and rng.random() < 0.8:
        groups = 1
    # The library computes these correctly only without dilation.
    dilated = kind != "ConvTransposeBackwardData" or rng.random() < 0.3
    axes = [_axis(rng, auto_pad, 3 if dilated else 1) for _ in range(rank)]
    n, k, p, strides, dilations, begins, ends, leftovers = (list(values) for values in zip(*axes, strict=True))
    data_format, spatial_first = rng.choice(("NXC", "NCX")), rng.random() < 0.5
    batch = rng.choice((1, 2, 3)) if rng.random() < 0.96 else 0
    filters = ("XOI", "IOX") if "Transpose" in kind else ("XIO", "OIX")
    attributes = {"strides": strides, "pads_begin": begins, "pads_end": ends, "dilations": dilations}
    if auto_pad is not None:
        attributes["auto_pad"] = auto_pad
        if auto_pad != "None":
            attributes["pads_begin"] = [rng.randint(0, 9) for _ in begins]
    if groups > 1 or rng.random() < 0.2:
        attributes["groups"] = groups
    if kind == "ConvTranspose" and (any(leftovers) or rng.random() < 0.2):
        attributes["output_padding"] = leftovers
    if data_format != "NXC" or rng.random() < 0.5:
        attributes["data_format"] = data_format
    if not spatial_first or rng.random() < 0.5:
        attributes["weights_format"] = filters[0 if spatial_first else 1]
    data = (lambda c, sizes: [batch, c, *sizes]) if data_format == "NCX" else (lambda c, sizes: [batch, *sizes, c])
    shapes = {
        "x": data(groups * ins, n),
        "w": [*k, ins, groups * outs] if spatial_first else [groups * outs, ins, *k],
        "y": data(groups * outs, p),
    }
    takes, shape = TAKES[kind]
    if shape is not None:
        attributes[shape] = shapes[({*"xwy"} - {*takes}).pop()]
    dtype = rng.choice(("float32", "float32", "bfloat16"))
    return Call(kind, attributes, [[dtype, shapes[part]] for part in takes])


def _axis(rng, auto_pad, dilations):
    """n, k, p, stride, dilation, pads and leftover of one axis."""
    k, stride, dilation, p = rng.randint(1, 4), rng.randint(1, 3), rng.randint(1, dilations), rng.randint(1, 4)
    if rng.random() < 0.02:
        p = 0
    extent = (k - 1) * dilation + 1
    leftover = rng.randrange(stride)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        return max(0, p * stride - leftover), k, p, stride, dilation, 0, 0, leftover
    begin, end = (0, 0) if auto_pad == "VALID" else (rng.randint(0, 3), rng.randint(0, 3))
    if rng.random() < 0.05 and auto_pad != "VALID":
        begin += extent
    # Sizes round toward zero: a kernel that is too large by less than a stride has one output, too.
    n = (p - 1) * stride + extent - begin - end + leftover
    if p == 1 and leftover and rng.random() < 0.3:
        n, leftover = n - 2 * leftover, 0
    while n < 0:
        n, p = n + stride, p + 1
    return n, k, p, stride, dilation, begin, end, leftover
