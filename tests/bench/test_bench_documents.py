"""The tables of README.md and docs/ agree with the results."""

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from bench import documents, results, slow_layers, suites, summary
from bench.training import summary as training_summary

pytestmark = pytest.mark.checkout
TEXTS = {name: (documents.ROOT / name).read_text(encoding="utf-8") for name in documents.DOCUMENTS}


@pytest.mark.parametrize("name", documents.DOCUMENTS)
def test_tables_are_those_of_the_results(name):
    """Each table must equal the one that ``python -m bench.documents`` makes."""
    assert documents.made_anew(TEXTS[name]).splitlines() == TEXTS[name].splitlines()


def test_every_table_stands_somewhere():
    found = [name for text in TEXTS.values() for name in re.findall(r"<!-- (\S+): made by", text)]
    assert sorted(found) == sorted(documents.TABLES)


def test_a_table_that_differs_is_seen_and_made_anew(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(documents, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    wrong = {
        name: re.sub(r"(\| (?:VGG-16|groups, channels last|U-Net, 2 images of 128×128) \| )\d", r"\g<1>7", text)
        for name, text in TEXTS.items()
    }
    for name, text in wrong.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert documents.main(["--check"]) == 1
    differing = [name for name in TEXTS if wrong[name] != TEXTS[name]]
    assert len(differing) >= 3 and capsys.readouterr().out.count("a table differs") == len(differing)
    assert documents.main([]) == 0 and documents.main(["--check"]) == 0
    assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in TEXTS} == TEXTS


def test_a_mean_is_that_of_the_numbers_in_the_file():
    """A mean must agree with the arrays of the file. It is computed in another way than in the tables."""
    data = json.loads((results.FOLDER / "zen4-x86_64_v4-float32.json").read_text())
    product, count = 1.0, 0
    for layer, _, layout, _, ours, *others in data["rows"]:
        if layer.startswith("vgg16_") and layout == "NCX":
            product *= min(other[0] for other in others if isinstance(other, list)) / ours[0]
            count += 1
    (line,) = (line for line in documents.layers_by_layout().splitlines() if line.startswith("| VGG-16 |"))
    zen4_first = line.split("|")[2 + list(documents.MACHINES).index("Zen 4") * len(documents.LAYOUTS)]
    assert count >= 24 and float(zen4_first) == pytest.approx(product ** (1 / count), abs=0.005)


def test_the_claims_of_the_readme_are_measured():
    """The numbers in the first lines of README.md must equal the results."""
    readme = TEXTS["README.md"]
    layers = [ratio for ratio, _ in summary.ratios(results.read("zen4-x86_64_v4-float32")["rows"])]
    assert f"at {summary.geometric_mean(layers):.2f}× the speed of the fastest of" in readme
    assert f"over {len(layers)} combinations" in readme.replace("\n  ", " ")
    steps = [
        training_summary.ratio(row)
        for row in results.read("zen4-x86_64_v4-training")["rows"]
        if row["dtype"] == "float32" and training_summary.is_timed(row)
    ]
    of_jax = [*map(training_summary.ratio, results.read("zen4-x86_64_v4-training-jax")["rows"])]
    depthwise = [
        line.split("|")[2].strip() for line in documents.gpu().splitlines() if line.startswith("| bfloat16 depthwise")
    ]
    last, first = depthwise
    told = f"run at {last}× (channels last) and {first}× (channels first) the speed of cuDNN"
    assert told in readme.replace("\n  ", " ")
    for ratios in (steps, of_jax):
        assert f"{min(ratios):.2f}× to {max(ratios):.2f}× the speed of" in readme.replace("\n  ", " ")


def test_all_suites_have_a_line():
    assert list(documents.SUITES) == [name for name in documents.SUITES if name in suites.NAMES]
    assert set(documents.SUITES) == set(suites.NAMES)


def test_reasons():
    names = [layer.name for layer in suites.LAYERS]
    for pattern, _ in slow_layers.REASONS:
        assert any(re.fullmatch(pattern, name) for name in names), f"no layer is {pattern}"
    assert "two channels of y" in slow_layers.reason("unet_classes")
    assert slow_layers.reason("unet_classes_2") == slow_layers.NOT_KNOWN


def test_tables_of_jax(monkeypatch, tmp_path):
    """The tables must be made from files of the two commands."""
    machine = documents.MACHINES["Zen 4"]
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(documents, "read", results.read)  # read() must keep nothing for other tests
    row = {"model": "jax_unet", "seconds": {"jax": [0.3, 0.4, 0.2], "convgrad_cy": [0.1, 0.1, 0.1]}}
    results.write({"framework": "jax", "rows": [row]}, tmp_path / f"{machine}-training-jax.json")
    results.write({"rows": [{**row, "complaint": "groups"}]}, tmp_path / f"{machine}-complaints.json")
    steps = documents.steps_jax()
    assert (
        "| U-Net, 2 images of 128×128 | 300 ms | 100 ms | 3.00 |" in steps
        and "| geometric mean |  |  | 3.00 |" in steps
    )
    assert "| 3×3, 32 groups, 128 channels, both gradients | 300 ms | 100 ms | 3 |" in documents.complaints()
