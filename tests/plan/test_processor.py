"""Numbers by processor: an entry applies to its processor only, and no numbers make a result wrong."""

import pytest
from operations import OPERATIONS, assert_exact, bits, integer_tensors, real_tensors
from problems import PROBLEMS

import convgrad_cy as cg
from convgrad_cy.cpu.machine import kernels
from convgrad_cy.cpu.machine.processor import processor
from convgrad_cy.cpu.machine.tuning import NARROW, TABLE, WIDE, Tuning, by_processor, tuning_of_processor

CPUINFO = """processor\t: 0
vendor_id\t: {}
cpu family\t: {}
model\t\t: {}
model name\t: Some Processor

processor\t: 1
vendor_id\t: Another
cpu family\t: 1
model\t\t: 1
"""
FAKED = ("FakedVendor", 99, 7)


@pytest.fixture
def faked(tmp_path, monkeypatch):
    """A function that gives a faked processor its own numbers, and reads this processor from a faked /proc/cpuinfo."""
    path = tmp_path / "cpuinfo"
    path.write_text(CPUINFO.format(*FAKED))

    def with_values(values, vector_bytes):
        monkeypatch.setattr(by_processor, "VALUES", {(*FAKED, vector_bytes): values})
        return processor(path)

    return with_values


@pytest.mark.parametrize(
    "text, expected",
    (
        (CPUINFO.format("AuthenticAMD", 25, 17), ("AuthenticAMD", 25, 17)),
        (CPUINFO.format("GenuineIntel", 6, 207), ("GenuineIntel", 6, 207)),
        (CPUINFO.format("AuthenticAMD", "unknown", 17), None),
        ("processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\n\n", None),
        ("", None),
    ),
)
def test_the_first_processor_is_read(text, expected, tmp_path):
    path = tmp_path / "cpuinfo"
    path.write_text(text)
    assert processor(path) == expected
    assert processor(tmp_path / "missing") is None


def test_a_processor_has_its_own_numbers(faked):
    """An entry applies to one width of vectors. Other numbers and other processors have the values of the table."""
    mine = faked({"box_positions": 300, "left_products": 0.5}, 64)
    assert tuning_of_processor(mine, 64) == WIDE._replace(box_positions=300, left_products=0.5)
    others = (("FakedVendor", 99, 8), ("FakedVendor", 98, 7), ("Other", 99, 7), None)
    assert {tuning_of_processor(mine, 32), *(tuning_of_processor(other, 64) for other in others)} == {None}
    assert tuning_of_processor(faked({"box_positions": 300}, 32), 32) == NARROW._replace(box_positions=300)


def test_plans_here_have_the_numbers_of_this_processor():
    machine = cg.cpu.this_machine()
    assert machine.own_tuning == tuning_of_processor(processor(), machine.vector_bytes)


def test_plans_take_the_numbers_that_import_found(monkeypatch):
    own = WIDE._replace(box_positions=300)
    monkeypatch.setattr(kernels, "_tuning", own)
    kernels._machine.cache_clear()
    try:
        assert kernels.this_machine(1).tuning is own and kernels.this_machine(5).tile.tuning is own
    finally:
        kernels._machine.cache_clear()


def test_kept_values_are_numbers_of_the_table():
    """Each entry replaces a value of the table by another value of its type."""
    for key, own in by_processor.VALUES.items():
        vendor, family, model, vector_bytes = key
        assert isinstance(vendor, str) and {type(family), type(model)} == {int} and vector_bytes in (16, 32, 64)
        for name, value in own.items():
            assert type(value) is type(getattr(WIDE, name)) and value > 0 and value != getattr(WIDE, name)


def multiplied(factor, vector_bytes):
    """Values of all numbers, multiplied by a factor."""
    default = WIDE if vector_bytes >= 64 else NARROW
    each = zip(TABLE, default, strict=True)
    return {
        number.name: max(1, int(value * factor)) if isinstance(value, int) else value * factor for number, value in each
    }


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("factor", (0.3, 3))
def test_no_numbers_change_a_result(factor, name, faked, machine_with):
    """Results of integers are exact. Results of reals have the same bits for all layouts and numbers of threads."""
    problem, size = PROBLEMS[name], cg.cpu.this_machine().vector_bytes
    tuning = tuning_of_processor(faked(multiplied(factor, size), size), size)
    usual = WIDE if size >= 64 else NARROW
    assert isinstance(tuning, Tuning) and all(
        mine != value or value == 1 for mine, value in zip(tuning, usual, strict=True)
    )
    integers, expected = integer_tensors(problem, "float32")
    reals = real_tensors(problem, "float32")
    for operation in (OPERATIONS[name] for name in ("conv", "conv_backward_data", "conv_backward_filter")):
        found = set()
        for threads in (1, 2, 5):
            machine_with(own_tuning=tuning, threads=threads)
            assert_exact(operation.call(problem, integers), expected[operation.kernel], "float32")
            plain = operation.call(problem, reals, algorithm="auto")
            last = operation.call(problem, reals, "NXC", "XIO", algorithm="auto")
            found |= {bits(plain), bits(plainly(last, operation.makes))}
        assert len(found) == 1


def plainly(array, tensor):
    """A channels-last result as a view in NCX or OIX."""
    if tensor == "w":
        return array.transpose(array.ndim - 1, array.ndim - 2, *range(array.ndim - 2))
    return array.transpose(0, array.ndim - 1, *range(1, array.ndim - 1))
