"""Values of numbers for some models of processors. They replace the values of ``TABLE``.

``python -m bench.tune --write`` measures on the processor that runs it, and writes this file.
"""

#: (vendor, family, model, bytes of a vector) -> name of a number -> value. The first three are from /proc/cpuinfo.
VALUES = {}
