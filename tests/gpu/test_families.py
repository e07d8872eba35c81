"""The choice of kernels, and the text that a compiler gets for them."""

import re
from pathlib import Path

import pytest
from gpus import DEVICES
from problems import PROBLEMS, parse
from simulated import CHANNELS_FIRST, CHANNELS_LAST, task_without_memory

from convgrad_cy.gpu import families, gather
from convgrad_cy.gpu.module import text


def test_the_last_family_takes_everything():
    assert families.PREFERENCE[-1] is gather
    for problem in PROBLEMS.values():
        for kernel in ("fprop", "dgrad", "wgrad"):
            assert gather.suits(task_without_memory(kernel, problem, "int32"))


def test_the_environment_restricts_the_families():
    assert families._allowed("") == families.PREFERENCE
    assert families._allowed("gather") == (gather,)
    first = families.NAMES[0]
    assert families._allowed(first) == (families.PREFERENCE[0], gather)
    names = ", ".join(families.NAMES)
    with pytest.raises(ImportError, match=rf"^CONVGRAD_CY_GPU must be names among {names}, was 'x,y'$"):
        families._allowed("x,y")


def test_a_sum_without_terms_is_for_the_last_family():
    task = task_without_memory("fprop", PROBLEMS["2d_channels65"], "float32")
    assert families.family(task) is not gather
    without = task._replace(source=task.source._replace(shape=(0, *task.source.shape[1:])))
    assert families.family(without) is gather


@pytest.mark.parametrize("arch", DEVICES)
@pytest.mark.parametrize("formats", (CHANNELS_FIRST, CHANNELS_LAST))
def test_sums_that_no_registers_hold_are_for_another_family(arch, formats):
    """Sums beyond the registers must go to another family: on sm_80 not even one output and one tap fit here."""
    problem = parse('mb2g8ic128ih9oc8kh3ph1n"wide"')
    task = task_without_memory("wgrad", problem, "float64", formats=formats, device=DEVICES[arch])
    assert families.plan(task).launches
    assert families.family_of(task) == ("depthwise" if (arch, formats) != (80, CHANNELS_LAST) else "simt")


def test_text_has_each_file_once_with_its_own_line_numbers():
    macros = (("STORAGE", "float"), ("THREADS", "32"))
    whole = text("gather.cu", macros)
    assert whole.startswith('#define STORAGE float\n#define THREADS 32\n#line 1 "gather.cu"\n')
    assert not re.search(r"^#include \"", whole, re.MULTILINE)
    files = re.findall(r'^#line 1 "(.+)"$', whole, re.MULTILINE)
    assert sorted(files) == ["convgrad/problem.h", "gather.cu", "types.cuh"]
    number, file, seen = 0, None, {}
    for line in whole.splitlines():
        marked = re.fullmatch(r'#line (\d+) "(.+)"', line)
        if marked:
            number, file = int(marked[1]), marked[2]
            continue
        seen[file, number] = line
        number += 1
    for number, line in enumerate(
        Path(gather.__file__).with_name("cuda").joinpath("gather.cu").read_text().splitlines(), 1
    ):
        if not line.startswith("#include"):
            assert seen["gather.cu", number] == line
