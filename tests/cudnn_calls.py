"""The calls of ``cupy.cudnn`` that compute the three kernels of a problem with symmetric padding."""

from problems import parse

from convgrad_cy.shims import cupy_cudnn as cudnn

PROBLEMS = {
    problem.name: problem
    for problem in map(
        parse,
        (
            'mb2g2ic4iw9oc6kw3sw2pw1n"cudnn_1d"',
            'mb2g2ic4ih7iw6oc6kh3kw2sh2sw1dh1dw0ph1pw2n"cudnn_2d"',
            'mb2g4ic4ih6oc8kh3sh2ph1n"cudnn_depthwise"',  # no tap reaches its last row
            'mb1ic2id4ih5iw3oc3kd2kh3kw1sd1sh2sw1pd1ph0pw0n"cudnn_3d"',
        ),
    )
}
#: Kernel -> the tensor that it makes.
MAKES = {"fprop": "y", "dgrad": "x", "wgrad": "w"}


def call(kernel, problem, tensors, target, bias=None, **layouts):
    """Write the kernel's result to ``target``. ``tensors`` are x, w and y."""
    x, w, y = tensors
    pads = tuple(begin for begin, _ in problem.padding)
    geometry = (pads, problem.stride, problem.dilation, problem.groups)
    if kernel == "fprop":
        done = cudnn.convolution_forward(x, w, bias, target, *geometry, auto_tune=True, tensor_core="auto", **layouts)
    elif kernel == "dgrad":
        done = cudnn.convolution_backward_data(
            w, y, bias, target, *geometry, deterministic=False, auto_tune=True, tensor_core="auto", **layouts
        )
    else:
        done = cudnn.convolution_backward_filter(
            x, y, target, *geometry, deterministic=True, auto_tune=False, tensor_core="never", **layouts
        )
    assert done is None


def complex_tensors(first, second, dtype):
    """Complex tensors with real parts from one triple and imaginary parts from another."""
    return tuple((one + 1j * other).astype(dtype) for one, other in zip(first, second, strict=True))
