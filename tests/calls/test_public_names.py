"""``dir`` of the package and of the shims lists the public names, and each of them exists."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import convgrad_cy as cg
from convgrad_cy import shims

MODULES = {
    "mindspore": {"Conv2DBackpropInput", "Conv2DTranspose", "Tensor", "dtype", "float32", "ops", "shape"},
    "onednn": {"Convolution", "ConvTranspose", "GraphError"},
    "cupy_cudnn": {"CUDNN_TENSOR_NCHW", "convolution_forward", "CuDNNError"},
    "tensorflow": {"errors", "raw_ops"},
    "tensorflow.raw_ops": {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"},
    "tensorflow.errors": {"OpError", "InvalidArgumentError", "UnimplementedError"},
}
#: Modules that serve the ones in ``MODULES``.
INNER = {"cupy_cudnn_call", "mindspore_rules", "shapes"}


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_package():
    """Modules must be hidden, unless they are public and imported."""
    assert run("import convgrad_cy as cg; print(sorted(cg.__all__) == dir(cg))") == "True"
    code = "import convgrad_cy.shims.onednn; print({*dir(convgrad_cy)} - {*convgrad_cy.__all__})"
    assert run(code) == "{'shims'}"
    assert all(hasattr(cg, name) for name in dir(cg))


@pytest.mark.parametrize("name", MODULES)
def test_a_shim(name):
    module = importlib.import_module(f"convgrad_cy.shims.{name}")
    assert dir(module) == sorted(module.__all__)
    assert MODULES[name] <= set(dir(module))
    public = {n for n, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__}
    lower = {"conv2d", "conv2d_backprop_input", "conv2d_backprop_filter"}  # raw_ops has capitalised names for these
    assert {n for n in public if not n.startswith("_")} - lower <= set(module.__all__)
    names = {}
    exec(f"from convgrad_cy.shims.{name} import *", names)
    assert set(module.__all__) <= names.keys()


def test_the_shims():
    assert dir(shims) == sorted(shims.__all__) == sorted(name for name in MODULES if "." not in name)
    assert {*shims.__all__, *INNER} == {module.name for module in pkgutil.iter_modules(shims.__path__)}
    assert run("from convgrad_cy.shims import *; print(onednn.Convolution.__name__)") == "Convolution"
