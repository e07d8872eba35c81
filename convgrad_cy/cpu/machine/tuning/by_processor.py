"""The numbers that have another value on some processors. All other numbers have the values of ``TABLE``.

``python -m bench.tune --write`` measures on the processor that runs it, and writes this file.
"""

#: (vendor, family, model, bytes of a vector) -> name of a number -> value. /proc/cpuinfo names the first three.
VALUES = {}
