"""``python -m convgrad_cy check``: this installation compared with the definition, on this machine.

``processes.py`` starts a process for each part of the check, because an instruction set is chosen at import, and
because a crash must not end the report. ``child.py`` runs in these processes. It sends records: dicts with the keys
``part`` (such as an instruction set), ``row`` (such as a type), ``checked`` and ``failed`` (numbers of results), and
``told`` (texts of failures). ``report.py`` prints them.

- ``kernels.py``: the functions on NumPy arrays, and with ``forks.py`` in a forked process.
- ``with_torch.py``, ``with_jax.py``, ``with_gpu.py``: the kernels in PyTorch and JAX, and on a GPU.
- ``cases.py``, ``functions.py``, ``storage.py``: the data, the calls, and the types.
- ``reference.py``, ``bounds.py``: the definition, and the errors that are allowed.
"""
