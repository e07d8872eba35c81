"""The definition of the three operations. The package has it for ``python -m convgrad_cy check``."""

from convgrad_cy.cli.check.reference import dgrad as dgrad
from convgrad_cy.cli.check.reference import fprop as fprop
from convgrad_cy.cli.check.reference import wgrad as wgrad
