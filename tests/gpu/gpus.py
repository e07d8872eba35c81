"""A GPU of every architecture: the first one of each compute capability that the package knows."""

from convgrad_cy.gpu.known import GPUS
from convgrad_cy.gpu.work import described

ATTRIBUTES = {arch: next(iter(named.values())) for arch, named in GPUS.items()}
DEVICES = {arch: described(arch, attributes, (13, 0), True) for arch, attributes in ATTRIBUTES.items()}
H200 = DEVICES[90]
