"""One file for each library, which computes the three kernels of a case as a user of the library would.

Each has a class ``Library`` with

* ``__init__(threads)`` - sets the library up;
* ``version`` - the library's version, for the report;
* ``allocates_result`` - whether a call makes the array of its result;
* ``refusals`` - the exceptions that say that the library does not offer an operation;
* ``operation(case, kernel, x, w, y)`` - a call without arguments that returns the finished result. The arguments are
  float64 arrays written as NCX and OIX. The operands are converted before the call, and this is not timed. Raises
  ``Unsupported``, or the library's own exception;
* ``plain(case, kernel, result)`` - the result as an array written as NCX or OIX.

A file is imported by its own worker process alone, so only one of the libraries is in any process.
"""

#: The import name of each library that convgrad_cy is compared with. PyTorch brings oneDNN.
NAMES = ("torch", "tensorflow", "jax", "mindspore")
OURS = "convgrad_cy"
#: The environment variable that names the algorithm for this package's worker.
ALGORITHM = "CONVGRAD_CY_BENCH_ALGORITHM"
