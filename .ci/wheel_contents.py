"""Whether a wheel has all that it must, and nothing else: ``python wheel_contents.py ISA WHEEL``, in the checkout.

The wheel has one instruction set. The modules of the others are built in the checkout: a wheel with all of them must be
small enough, too.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
import zlib
from pathlib import Path

#: Megabytes of a wheel with all instruction sets.
LARGEST = 4


def packed_size(module):
    """Bytes of a module in a wheel: stripped, as packaging/repair.sh does it on Linux, and compressed."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copy(module, folder))
        if sys.platform == "linux":
            subprocess.run(["strip", "--strip-unneeded", copy], check=True)
        return len(zlib.compress(copy.read_bytes(), 9))


def main(chosen, wheel):
    wheel = Path(wheel)
    names = [entry.filename for entry in zipfile.ZipFile(wheel).infolist() if not entry.is_dir()]
    stray = [name for name in names if re.search(r"\.(c|pyx|pxd|o)$|^(tests|bench|pyx|build)/", name)]
    assert not stray, f"the wheel holds {stray}"
    built = {name.split("/")[1].split(".")[0] for name in names if name.endswith(".so")}
    suffix = sysconfig.get_config_var("EXT_SUFFIX")  # not the modules for arm64, which the stage arm builds there, too
    in_place = {path.name.removesuffix(suffix): path for path in Path("convgrad_cy").glob(f"*{suffix}")}
    expected = {name for name in in_place if not name.startswith("_kernels_") or name == f"_kernels_{chosen}"}
    assert built == expected and len(built) == 6, f"the wheel holds the modules {built}, not {expected}"
    package_files = {"convgrad_cy/include/convgrad/problem.h", "convgrad_cy/data/digits.npz", "convgrad_cy/py.typed"}
    package_files |= {str(path) for path in Path("convgrad_cy").rglob("*") if path.suffix in (".cu", ".cuh", ".pyi")}
    missing = package_files - set(names)
    assert not missing, f"the wheel lacks {missing}"
    if sys.platform == "linux":
        assert "manylinux" in wheel.name, "the wheel is not repaired"
        libraries = [name for name in names if name.startswith("convgrad_cy.libs/")]
        assert libraries == ["convgrad_cy.libs/libgomp.so.1"], libraries
        for about_libgomp in ("licenses/libgomp.txt", "sboms/bundled.cdx.json"):
            assert any(name.endswith(f".dist-info/{about_libgomp}") for name in names), about_libgomp
    others = sum(packed_size(path) for name, path in in_place.items() if name not in expected)
    own = wheel.stat().st_size
    print(f"{wheel.name}: {own / 1e6:.2f} MB, with all instruction sets {(own + others) / 1e6:.2f} MB")
    assert own + others <= LARGEST * 1e6, f"the wheel has more than {LARGEST} MB"


if __name__ == "__main__":
    main(*sys.argv[1:])
