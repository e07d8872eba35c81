"""GPUs as CuPy describes them, from their data sheets: the attributes that plans depend on.

Kernels are compiled ahead for them on machines without a GPU. The first one of each compute capability is the GPU of
the tests.
"""


def _attributes(processors, shared, memory_clock, width, clock):
    """Shared memory in KB, clocks in MHz, the width of the memory in bits."""
    return {
        "MultiProcessorCount": processors,
        "MaxSharedMemoryPerBlockOptin": shared << 10,
        "MemoryClockRate": memory_clock * 1000,
        "GlobalMemoryBusWidth": width,
        "ClockRate": clock * 1000,
    }


#: Compute capability -> name -> attributes.
GPUS = {
    75: {
        "T4": _attributes(40, 64, 5001, 256, 1590),
        "RTX 2080 Ti": _attributes(68, 64, 7000, 352, 1545),
    },
    80: {
        "A100 40GB": _attributes(108, 163, 1215, 5120, 1410),
        "A100 80GB": _attributes(108, 163, 1593, 5120, 1410),
        "A30": _attributes(56, 163, 1215, 3072, 1440),
    },
    86: {
        "A40": _attributes(84, 99, 7251, 384, 1740),
        "A10": _attributes(72, 99, 6251, 384, 1695),
        "RTX A6000": _attributes(84, 99, 8001, 384, 1800),
        "RTX 3090": _attributes(82, 99, 9751, 384, 1695),
    },
    89: {
        "RTX 4090": _attributes(128, 99, 10501, 384, 2520),
        "L4": _attributes(58, 99, 6251, 192, 2040),
        "L40S": _attributes(142, 99, 9001, 384, 2520),
    },
    90: {
        "H200": _attributes(132, 227, 3201, 6144, 1980),
        "H100 SXM": _attributes(132, 227, 2619, 5120, 1980),
        "H100 PCIe": _attributes(114, 227, 1593, 5120, 1755),
    },
    100: {"B200": _attributes(148, 227, 3996, 8192, 1965)},
    120: {"RTX 5090": _attributes(170, 99, 14001, 512, 2407)},
}
