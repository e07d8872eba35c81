"""Steps of a build. Only steps with changed inputs run, each as soon as its sources exist."""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

from setuptools.modified import newer_group


class Step(NamedTuple):
    """A rule that makes one file.

    Attributes
    ----------
    target : str
        The file.
    sources : list of str
        Files that must exist before. If there are any, ``make`` also writes the files that the compiler has read to the
        target's name with the further suffix ``.dep``, as a rule of make.
    make : callable
        Makes the file.
    made_with : str or None
        Versions and flags, which timestamps do not show. None: ``make`` itself finds out whether it is needed.
    """

    target: str
    sources: list[str]
    make: Callable[[], object]
    made_with: str | None = None

    def run(self, always=False, store=None):
        """Make the file, unless it is newer than its inputs and was made with the same versions and flags.

        With a store, take the file from there if another build has made it from the same inputs.
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
        """Names of the files that the compiler has read below this folder.

        Versions stand for all other files, because pip moves them for each build.
        """
        if not self.sources:
            return []
        _, paths = Path(f"{self.target}.dep").read_text().replace("\\\n", " ").split(": ", 1)
        return [path for path in paths.split() if not path.startswith(("/", ".."))]


def run_all(steps, workers, always=False, store=None):
    """Run steps, at most ``workers`` at a time. Steps whose sources exist run in the order of the list."""
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
