"""The messages for a PyTorch that is missing, broken or too old. No other module imports it."""

import pytest
import scripts

pytestmark = pytest.mark.torch

OLD = "__version__ = '2.8.0+cpu'"
BROKEN = "raise ImportError('libtorch.so: cannot open shared object file')"
ABSENT = "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')"
IMPORT = """
import convgrad_cy
try:
    import convgrad_cy.torch
except ImportError as error:
    print(type(error).__name__, error, error.__cause__, sep="|")
print(convgrad_cy.get_num_threads() > 0)
"""


@pytest.mark.parametrize(
    "torch_module, said",
    [
        (OLD, "ImportError|convgrad_cy.torch needs PyTorch 2.9 or newer, not 2.8.0+cpu|None"),
        (
            BROKEN,
            "ImportError|convgrad_cy.torch needs PyTorch 2.9 or newer: pip install torch"
            "|libtorch.so: cannot open shared object file",
        ),
        (
            ABSENT,
            "ImportError|convgrad_cy.torch needs PyTorch 2.9 or newer: pip install torch|No module named 'torch'",
        ),
    ],
    ids=["old", "broken", "absent"],
)
def test_pytorch_that_is_missing_or_old(tmp_path, torch_module, said):
    folder = tmp_path / "fake"
    folder.mkdir()
    (folder / "torch.py").write_text(torch_module)
    assert scripts.run(tmp_path, IMPORT, paths=[folder]) == [said, "True"]


@pytest.mark.parametrize("version", ["2.9.0", "2.10.0a0+git1234", "3.0.0+cpu", "2.13.0.dev20260101"])
def test_versions_that_are_new_enough(tmp_path, version):
    """Versions must be compared as numbers, whatever follows them."""
    check = f"""
import sys, types
torch = types.ModuleType("torch")
torch.__version__ = {version!r}
sys.modules["torch"] = torch
try:
    import convgrad_cy.torch
except ImportError as error:
    print("needs" in str(error))
except AttributeError:  # the fake has nothing else
    print(False)
"""
    assert scripts.run(tmp_path, check) == ["False"]


def test_the_package_does_not_import_torch(tmp_path):
    assert scripts.run(tmp_path, "import sys, convgrad_cy\nprint('torch' in sys.modules)") == ["False"]
