"""A lock that a forked child can take."""

import os
import threading


class ForkSafeLock:
    """A reentrant lock, used as ``with lock.held:``, which a fork renews in the child.

    A thread that holds a lock while another one forks does not exist in the child, so a plain lock would stay held
    there forever. It is reentrant because a signal handler may call the package while the main thread holds it.
    """

    def __init__(self):
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self):
        #: A block that is open across the fork releases the old lock.
        self.held = threading.RLock()
