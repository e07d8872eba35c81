"""When a data gradient is formed from patches that overlap (rewrites/overlaps.py)."""

from .number import same

TABLE = (
    same(
        "least_block_elements", 64, "elements of the largest part of a block",
        "Fewer leave most of a tile empty, as stride phases do.",
    ),
    same(
        "least_elements_of_all_parts", 32, "elements of the smallest part of a block",
        "This smaller number is enough if every part has it.",
    ),
    same(
        "least_overlapped_products", 48, "products of an element of x for each of its channels",
        "Strided sums have as many products at a time as x has channels: fewer save less time than the copy of the "
        "element takes.",
    ),
)  # fmt: skip
