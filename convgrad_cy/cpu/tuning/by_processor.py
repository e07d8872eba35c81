"""The numbers whose best value differs between processors. All others have the values of ``TABLE``.

``python -m bench.tune --write`` measures on the processor at hand and writes this file.
"""

#: By (vendor, family, model, bytes of a vector), the first three as /proc/cpuinfo has them: the value of each number.
VALUES = {}
