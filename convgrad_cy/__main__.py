"""``python -m convgrad_cy``: the command line of ``cli/``."""

import sys

from convgrad_cy.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
