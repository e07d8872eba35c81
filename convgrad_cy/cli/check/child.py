"""The process of one part of the check: ``python -m convgrad_cy.cli.check.child PART`` sends its records.

A record is a line of JSON on standard output. All else that is printed goes to standard error.
"""

import json
import os
import sys
from importlib import import_module

#: Part -> module with a function `records`.
PARTS = {"kernels": "kernels", "PyTorch": "with_torch", "JAX": "with_jax", "GPU": "with_gpu"}


def main(part):
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for record in import_module(f"{__package__}.{PARTS[part]}").records():
        print(json.dumps(record), file=pipe, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
