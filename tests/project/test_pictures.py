"""The pictures of the documents: small files, which docs/images/draw.py can make again."""

import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.checkout
FOLDER = Path(__file__).parents[2] / "docs" / "images"


def test_pictures_are_small():
    pictures = [*FOLDER.glob("*.png")]
    assert len(pictures) >= 5
    assert [path.name for path in pictures if path.stat().st_size > 100_000] == []


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_the_script_draws_each_picture(tmp_path):
    script = runpy.run_path(str(FOLDER / "draw.py"))
    for name in ("gathers", "phases", "transposed"):
        assert (FOLDER / f"{name}.png").exists()
        script[name]().savefig(tmp_path / "picture.png", dpi=30)
        assert (tmp_path / "picture.png").read_bytes()[:4] == b"\x89PNG"
