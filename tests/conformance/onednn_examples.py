"""One correct call of each gradient in oneDNN's two documents, under its two names. Tests change it into wrong ones."""

import numpy as np
import pytest

from convgrad_cy.shims import onednn

GRAPH_OP, SHAPE, ARGUMENTS = "invalid_graph_op", "invalid_shape", "invalid_arguments"
GEOMETRY = {"strides": [2, 1], "pads_begin": [1, 0], "pads_end": [0, 1], "dilations": [1, 2]}
#: Shapes in the default formats: x, w and y of the convolution. DELTA is w in the second document's layout (X, I, O /
#: g).
X, Y, FILTER, DELTA = (2, 6, 7, 3), (2, 3, 4, 4), (2, 3, 3, 4), (2, 3, 4, 3)


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


#: operation -> its attributes, its inputs, and the shape of its result.
OPERATIONS = {
    onednn.ConvolutionBackpropData: (GEOMETRY | {"output_shape": X}, (ones(*Y), ones(*FILTER)), X),
    onednn.ConvTransposeBackpropFilters: (GEOMETRY | {"filter_shape": DELTA}, (ones(*Y), ones(*X)), DELTA),
    onednn.ConvolutionBackwardData: (GEOMETRY | {"dst_shape": X}, (ones(*Y), ones(*FILTER)), X),
    onednn.ConvTransposeBackwardWeights: (GEOMETRY | {"weights_shape": FILTER}, (ones(*Y), ones(*X)), FILTER),
}  # fmt: skip


def call(operation, inputs=None, **changed):
    attributes, arrays, _ = OPERATIONS[operation]
    attributes = {name: value for name, value in (attributes | changed).items() if value is not Ellipsis}
    return operation(**attributes)(*(arrays if inputs is None else inputs))


def refused(operation, status, kind, inputs=None, **changed):
    """The call must raise the class and the status. The message must name the operation and the status."""
    with pytest.raises(onednn.GraphError) as caught:
        call(operation, inputs, **changed)
    error = caught.value
    assert isinstance(error, kind) and error.status in ((status,) if isinstance(status, str) else status)
    assert str(error).startswith(f"{operation.__name__}: ") and str(error).endswith(f" ({error.status})")
    return str(error)
