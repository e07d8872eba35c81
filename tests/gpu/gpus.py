"""GPUs of every architecture as CuPy describes them: the attributes that plans depend on, from the data sheets."""

from convgrad_cy.gpu.work import described


def _attributes(processors, shared, memory_clock, width, clock):
    """Shared memory in KB, clocks in MHz, the width of the memory in bits."""
    return {
        "MultiProcessorCount": processors,
        "MaxSharedMemoryPerBlockOptin": shared << 10,
        "MemoryClockRate": memory_clock * 1000,
        "GlobalMemoryBusWidth": width,
        "ClockRate": clock * 1000,
    }


ATTRIBUTES = {
    75: _attributes(40, 64, 5001, 256, 1590),  # T4
    80: _attributes(108, 163, 1215, 5120, 1410),  # A100
    86: _attributes(84, 99, 7251, 384, 1740),  # A40
    89: _attributes(128, 99, 10501, 384, 2520),  # RTX 4090
    90: _attributes(132, 227, 3201, 6144, 1980),  # H200
    100: _attributes(148, 227, 3996, 8192, 1965),  # B200
    120: _attributes(170, 99, 14001, 512, 2407),  # RTX 5090
}
DEVICES = {arch: described(arch, attributes, (13, 0), True) for arch, attributes in ATTRIBUTES.items()}
H200 = DEVICES[90]
