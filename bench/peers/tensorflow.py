"""TensorFlow: the raw operations that its layers and their gradients call, eagerly.

Filters are HWIO in both layouts. A case of one axis is two-dimensional with rows of one, as in ``tf.nn.conv1d``.
Depthwise layers have their own operations. Padding is SAME or VALID if the case has that padding, and else EXPLICIT.
"""

import numpy as np
import tensorflow as tf

from bench.case import Unsupported, activation_in, filter_in, written_plainly

raw = tf.raw_ops


def named_padding(case):
    """SAME, VALID, or None if neither is the padding of the case."""
    if all(pair == (0, 0) for pair in case.padding):
        # VALID may leave a rest of x that no tap reaches. No other sum of padding may.
        return "VALID"
    for x, y, kernel, stride, dilation, pair in zip(
        case.x[2:], case.y[2:], case.kernel, case.stride, case.dilation, case.padding, strict=True
    ):
        total = max(0, (y - 1) * stride + (kernel - 1) * dilation + 1 - x)
        if y != -(-x // stride) or pair != (total // 2, total - total // 2):
            return None
    return "SAME"


class Library:
    allocates_result = True
    refusals = (tf.errors.OpError, TypeError)

    def __init__(self, threads):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        self.version = tf.__version__

    def operation(self, case, kernel, x, w, y):
        if case.rank == 1:
            x, w, y = (np.expand_dims(array, 2) for array in (x, w, y))
        depthwise = case.groups > 1 and case.w[1] == 1 and w.ndim == 4

        def tensor(array):
            return tf.cast(tf.constant(activation_in(case.layout, array)), case.dtype)

        def filter_tensor(array):
            made = filter_in("NXC", array)
            if depthwise:
                made = made.reshape(*made.shape[:2], case.groups, -1)
            return tf.cast(tf.constant(made), case.dtype)

        # int32 tensors are attributes of shape here, and stay on the host.
        x_shape = tf.constant(activation_in(case.layout, np.broadcast_to(np.int8(0), x.shape)).shape, tf.int32)
        w_shape = tf.constant(
            [*w.shape[2:], *((case.groups, w.shape[0] // case.groups) if depthwise else (w.shape[1], w.shape[0]))],
            tf.int32,
        )
        attributes = self.attributes(case, w.ndim - 2)
        if w.ndim == 5:
            if "explicit_paddings" in attributes:
                raise Unsupported("explicit padding of three axes")
            forward, data, filter = raw.Conv3D, raw.Conv3DBackpropInputV2, raw.Conv3DBackpropFilterV2
        elif depthwise:
            forward = raw.DepthwiseConv2dNative
            data, filter = raw.DepthwiseConv2dNativeBackpropInput, raw.DepthwiseConv2dNativeBackpropFilter
        else:
            forward, data, filter = raw.Conv2D, raw.Conv2DBackpropInput, raw.Conv2DBackpropFilter

        if kernel == "fprop":
            x, w = tensor(x), filter_tensor(w)
            return lambda: forward(input=x, filter=w, **attributes)
        if kernel == "dgrad":
            y, w = tensor(y), filter_tensor(w)
            return lambda: data(input_sizes=x_shape, filter=w, out_backprop=y, **attributes)
        x, y = tensor(x), tensor(y)
        return lambda: filter(input=x, filter_sizes=w_shape, out_backprop=y, **attributes)

    @staticmethod
    def attributes(case, rank):
        """The attributes that all operations of a case take."""
        fill = rank - case.rank

        def per_dimension(values, one):
            """One entry per dimension of the activations, with ``one`` for batch and channels."""
            values = [*[one] * fill, *values]
            return [one, *values, one] if case.channels_last else [one, one, *values]

        axes = "DHW"[-rank:]
        padding = named_padding(case)
        attributes = {
            "strides": per_dimension(case.stride, 1),
            "dilations": per_dimension(case.dilation, 1),
            "data_format": f"N{axes}C" if case.channels_last else f"NC{axes}",
            "padding": padding or "EXPLICIT",
        }
        if padding is None:
            attributes["explicit_paddings"] = [end for pair in per_dimension(case.padding, (0, 0)) for end in pair]
        return attributes

    def plain(self, case, kernel, result):
        array = result.numpy()
        if kernel == "wgrad":
            array = written_plainly("NXC", kernel, array.reshape(*array.shape[:-2], -1, case.w[0]))
            return array.reshape(case.w)
        return written_plainly(case.layout, kernel, array).reshape(case.shape(kernel))
