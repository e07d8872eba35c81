"""Record TensorFlow's outcomes of the calls of ``tensorflow_values`` and ``tensorflow_errors``.

    python -m pip install tensorflow-cpu==2.21.0
    python tests/conformance/record_tensorflow.py

In a call, ``C`` is Conv2D, ``I`` Conv2DBackpropInput, ``F`` Conv2DBackpropFilter. ``t`` is an array by rule, and ``T``
turns it into a tensor of TensorFlow. The plain CPU kernels answer (TF_ENABLE_ONEDNN_OPTS=0). XLA answers if they cannot
compute a legal call (NCHW, dilation, groups) or sum in half precision.
"""

import os
import random
import re
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from conformance import replay
from conformance.tensorflow_errors import array, errors, refused
from conformance.tensorflow_values import draw

PATH = Path(__file__).with_name("tensorflow.json")
XLA = "XLA: "
#: Messages of the plain kernels for a call that has a meaning.
LIMITS = (
    "only supports NHWC",
    "only supports the NHWC tensor format",
    "do not yet support dilation rates larger than 1",
    "Gradients for grouped convolutions are not supported on CPU",
    "filter_size does not have enough elements",
)

PADDED = {"padding": '"EXPLICIT"', "explicit_paddings": "[0, 0, 2, 2, 0, 0, 0, 0]"}
#: Calls with properties that the random ones lack.
SPECIAL = [
    refused("I", {"strides": "(1, 1.9, True, np.int64(1))"}),
    refused("I", {"padding": 'b"VALID"', "data_format": "None", "dilations": "None", "explicit_paddings": "None"}),
    refused("I", {"use_cudnn_on_gpu": "None", "name": "5"}),
    refused("F", {"use_cudnn_on_gpu": "False", "name": '"a b!"'}),
    refused("I", {"input_sizes": "np.array([1, 4, 4, 2])"}),
    refused("I", {"input_sizes": "np.array([1, 4, 4, 2], np.uint8)"}),
    refused("I", {"input_sizes": "np.array([1.0, 4.5, 4.0, 2.0])"}),
    refused("I", {"input_sizes": "np.array([1, 9, 4, 9, 4, 9, 2])[::2]"}),
    refused("I", {"input_sizes": "(np.int64(1), 4, 4, 2)"}),
    refused("I", {"input_sizes": "[True, 4, 4, 2]"}),
    refused("I", {"input_sizes": "[2**32 + 1, 4, 4, 2]"}),
    refused("I", {"input_sizes": "(4, 4)"}),
    refused("F", {"filter_sizes": "np.array([3, 3, 2, 4], np.int16)"}),
    refused("I", {"filter": 't("float32", (3, 3, 2, 4), 1).astype(">f4")'}),
    refused("I", {"filter": 't("float32", (4, 2, 3, 3), 1).T'}),
    refused("I", {"filter": 't("float32", (3, 3, 2, 4), 1)[::-1, :, ::-1]'}),
    refused("I", {"filter": 'np.ma.masked_array(t("float32", (3, 3, 2, 4), 1))'}),
    refused("I", {"filter": 't("int32", (3, 3, 2, 4), 1).tolist()', "out_backprop": "[[[[1] * 4] * 2] * 2]"}),
    refused("I", {"filter": 't("float32", (3, 3, 2, 4), 1).tolist()', "out_backprop": "[[[[1] * 4] * 2] * 2]"}),
    refused("I", {"filter": 't("float64", (3, 3, 2, 4), 1)', "out_backprop": "[[[[0.5] * 4] * 2] * 2]"}),
    refused("C", {"filter": 't("float32", (3, 3, 2, 4), 1).tolist()'}),
    refused("C", {"input": array((1, 4, 4, 0))}),
    refused("C", {"filter": array((3, 3, 1, 3)), "input": array((0, 4, 4, 2))}),
    refused("C", {"filter": array((3, 3, 2, 0))}),
    refused("C", {"input": array((1, 0, 4, 2)), "filter": array((3, 3, 1, 3)), **PADDED}),
    refused("C", {"input": array((1, 0, 4, 2)), "filter": array((0, 3, 2, 4)), **PADDED}),
    refused("C", {"input": array((1, 4, 4, 2)), "filter": array((0, 3, 1, 3))}),
    refused("C", {"input": array((0, 4, 4, 2)), "filter": array((0, 3, 1, 3))}),
    refused("C", {"filter": array((5, 5, 2, 4)), "strides": "[1, 3, 3, 1]"}),
    refused("I", {"filter": array((5, 5, 2, 4)), "strides": "[1, 3, 3, 1]", "out_backprop": array((1, 0, 0, 4))}),
    refused("I", {"filter": array((3, 3, 2, 0)), "out_backprop": array((1, 2, 2, 0))}),
    refused("I", {"filter": array((0, 3, 2, 4)), "out_backprop": array((1, 5, 2, 4))}),
    refused("F", {"filter_sizes": "[0, 3, 2, 4]", "out_backprop": array((1, 5, 2, 4))}),
    refused("F", {"filter_sizes": "[3, 3, 2, 0]", "out_backprop": array((1, 2, 2, 0))}),
    refused("F", {"input": array((0, 4, 4, 2)), "out_backprop": array((0, 2, 2, 4))}),
    refused("I", {"strides": "[1, 2**31 - 1, 1, 1]", "out_backprop": array((1, 1, 2, 4))}),
    refused("I", {"filter": 't("int32", (3, 3, 2, 4), 1) * 2**29', "out_backprop": 't("int32", (1, 2, 2, 4), 1)'}),
    refused("C", {"filter": 't("int32", (3, 3, 2, 4), 1) * 2**29', "input": 't("int32", (1, 4, 4, 2), 1)'}),
]  # fmt: skip


def shorten(message):
    """The core of a message: without the names of node and device, and the definition of the operation."""
    message = message.partition("\n\t; NodeDef")[0]
    message = re.sub(r"^\{\{.*?\}\} ", "", message)
    return re.sub(r" \[Op:\w+\]( name: .*)?$", "", message, flags=re.DOTALL)


def framework():
    """The names of the expressions, for TensorFlow."""
    os.environ.update(TF_ENABLE_ONEDNN_OPTS="0", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    import tensorflow as tf

    def answering(op):
        def compiled(given):
            try:
                return tf.function(lambda: op(**given), jit_compile=True, autograph=False)()
            except Exception as error:
                raise type(error.__class__.__name__, (Exception,), {})(XLA + shorten(str(error))[:300]) from None

        def answer(*args, **given):
            try:
                result = op(*args, **given)
            except tf.errors.OpError as error:
                if not any(limit in str(error) for limit in LIMITS):
                    raise
                try:
                    return compiled(given)
                except Exception as other:
                    if "dilation rates" in str(error):
                        raise error from None  # the message for a dilation of zero, too
                    raise other from None
            # The plain kernels form these sums in half precision.
            half = result.dtype in (tf.float16, tf.bfloat16) and len(given.get("input_sizes", range(4))) == 4
            return compiled(given) if half and result.shape.num_elements() and 0 not in shapes(given) else result

        return answer

    def shapes(given):
        return [size for value in given.values() for size in getattr(value, "shape", ())]

    names = {"C": tf.raw_ops.Conv2D, "I": tf.raw_ops.Conv2DBackpropInput, "F": tf.raw_ops.Conv2DBackpropFilter}
    return {name: answering(op) for name, op in names.items()} | {"t": replay.tensor, "T": tf.constant}


def evaluate(call, names):
    return replay.evaluate(call, names, lambda result: result.numpy(), shorten)


def main():
    rng = random.Random(20)
    calls = SPECIAL + [draw(rng) for _ in range(690)] + errors(rng, 120)
    names = framework()
    import tensorflow as tf

    outcomes = {call: evaluate(call, names) for call in dict.fromkeys(calls)}
    replay.save(PATH, f"tensorflow-cpu {tf.__version__}", outcomes)
    refusals = sum(outcome.error is not None for outcome in outcomes.values())
    print(f"{len(outcomes) - refusals} values, {refusals} errors -> {PATH}")


if __name__ == "__main__":
    main()
