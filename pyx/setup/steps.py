"""Steps of a build: those of which something has changed, each as soon as what it needs is there."""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

from setuptools.modified import newer_group


class Step(NamedTuple):
    """How one file is made.

    Attributes
    ----------
    target : str
        The file.
    sources : list of str
        What has to be there before. Where there are some, the compiler says what it reads: in a file with the further
        suffix ``.dep``, in the form of make's rules.
    make : callable
        Makes the file.
    made_with : str or None
        Versions and flags, of which timestamps say nothing. None: ``make`` itself finds out whether it is needed.
    """

    target: str
    sources: list[str]
    make: Callable[[], object]
    made_with: str | None = None

    def run(self, always=False, store=None):
        """Make the file, unless it is newer than all that it was made from, with the same versions and flags.

        With a store, take it from there where another build has made the same.
        """
        if self.made_with is None:
            self.make()
        elif always or not self._is_current():
            self._stamp.unlink(missing_ok=True)
            Path(self.target).parent.mkdir(parents=True, exist_ok=True)
            read = store.take(self) if store and not always else None
            if read is None:
                self.make()
                read = self._read()
                if store:
                    store.keep(self, read)
            self._stamp.write_text("\n".join([self.made_with, *read]))

    @property
    def _stamp(self):
        return Path(f"{self.target}.made")

    def _is_current(self):
        if not self._stamp.exists():
            return False
        made_with, *read = self._stamp.read_text().split("\n")
        return made_with == self.made_with and not newer_group(read, self.target, missing="newer")

    def _read(self):
        """What the compiler has read below this folder: of the rest, which pip moves each time, versions say enough."""
        if not self.sources:
            return []
        _, paths = Path(f"{self.target}.dep").read_text().replace("\\\n", " ").split(": ", 1)
        return [path for path in paths.split() if not path.startswith(("/", ".."))]


def run_all(steps, workers, always=False, store=None):
    """So many steps at a time, of those whose sources are there the first of the list first."""
    waiting, running = list(steps), {}
    with ThreadPoolExecutor(workers) as pool:
        while waiting or running:
            missing = {step.target for step in [*waiting, *running.values()]}
            ready = [step for step in waiting if missing.isdisjoint(step.sources)]
            for step in ready[: workers - len(running)]:
                waiting.remove(step)
                running[pool.submit(step.run, always, store)] = step
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                del running[future]
                future.result()
