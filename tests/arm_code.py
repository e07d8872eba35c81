"""Checks the innermost loop of the full register tile on Arm: ``objdump -d FILE | python arm_code.py``.

A loop that reads or writes the stack has lost a sum or an address from its registers.
"""

import re
import sys
from itertools import takewhile
from typing import NamedTuple

#: Function -> the instruction that adds its products.
TILES = {"tile_f32": "fmla", "tile_pairs": "bfdot"}
ROWS, VECTORS = 6, 4
MOST_INSTRUCTIONS = 1.8  # of a loop, for each instruction that adds products

BRANCH = re.compile(r"(?:b|b\.\w+|bl|blr|br|ret|cbn?z|tbn?z)\b")
#: An instruction that takes an element of its last vector, such as "fmla v5.4s, v0.4s, v4.s[0]".
BY_ELEMENT = re.compile(r"(?P<name>\w+)\s+(?P<sum>v\d+)\.\w+, (?P<line>v\d+)\.\w+, v\d+\.\w+\[\d\]")


class Loop(NamedTuple):
    instructions: int
    products: int  # instructions that add products
    stack: int  # instructions that read or write the stack

    def __str__(self):
        each = self.instructions / self.products
        return (
            f"{self.instructions} instructions for {self.products} products, {each:.2f} each, {self.stack} on the stack"
        )


def functions(listing):
    """Function name -> list of (address, instruction)."""
    found, code = {}, []
    for line in listing.splitlines():
        if begin := re.match(r"[0-9a-f]+ <(\w+)(?:\.\w+)*>:", line):
            code = found.setdefault(begin[1], [])
        elif step := re.match(r"\s*([0-9a-f]+):\s+(.+)", line):
            code.append((int(step[1], 16), " ".join(step[2].split())))
    return found


def innermost_loops(code):
    """The instructions of each loop that contains no other branch."""
    for last, (address, instruction) in enumerate(code):
        target = re.search(r"\b([0-9a-f]+) <", instruction) if BRANCH.match(instruction) else None
        if target and int(target[1], 16) <= address:
            before = takewhile(lambda step: not BRANCH.match(step[1]), reversed(code[:last]))
            body = [step[1] for step in before if step[0] >= int(target[1], 16)]
            if len(body) == (address - int(target[1], 16)) // 4:
                yield [*reversed(body), instruction]


def full_tile(code, name):
    """The slowest loop of a function that multiplies a full tile by elements; None if there is none."""
    found = []
    for body in innermost_loops(code):
        products = [made for made in map(BY_ELEMENT.match, body) if made and made["name"] == name]
        lines, sums = ({made[part] for made in products} for part in ("line", "sum"))
        if (len(sums), len(lines)) == (ROWS * VECTORS, VECTORS):
            found.append(Loop(len(body), len(products), sum("sp" in re.findall(r"\w+", step) for step in body)))
    return max(found, default=None)


def main():
    every, failed = functions(sys.stdin.read()), False
    for function, name in TILES.items():
        loop = full_tile(every.get(function, []), name)
        print(f"{function}: {loop or f'no loop with {ROWS} rows and {VECTORS} vectors of {name}'}")
        failed |= loop is None or loop.stack > 0 or loop.instructions > MOST_INSTRUCTIONS * loop.products
    sys.exit(failed)


if __name__ == "__main__":
    main()
