"""A folder of made files that builds share. A build takes a file that another has made from the same inputs."""

import hashlib
import shutil
import tempfile
from pathlib import Path


class Store:
    """Made files, found by the contents of the files that the compiler has read.

    A file lies in ``HOW/WHAT/``. ``HOW`` is the hash of flags, versions and the names of target and sources. ``WHAT``
    is the hash of the contents of all files that the compiler has read. Only the compiler knows their names, so the
    names are kept with the made file. A file with the same ``HOW`` is taken if these names have the same contents now.
    """

    def __init__(self, folder):
        self.folder = Path(folder)

    def take(self, step):
        """Copy the step's file from the folder and return the names of its inputs, or None if it is not there."""
        for kept in self._alike(step).glob("*/read"):
            read = kept.read_text().split()
            if kept.parent.name == _hash_of_files(read):
                shutil.copyfile(kept.with_name("made"), step.target)  # a copy is newer than all inputs
                return read
        return None

    def keep(self, step, read):
        """Put the step's file into the folder, with the names of its inputs."""
        kept = self._alike(step) / _hash_of_files(read)
        kept.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=self.folder))
        shutil.copyfile(step.target, unfinished / "made")
        (unfinished / "read").write_text("\n".join(read))
        try:
            unfinished.rename(kept)  # atomic, because another build may look for the file at this moment
        except OSError:  # another build was faster, or this build makes everything anew
            shutil.rmtree(unfinished)

    def _alike(self, step):
        how = repr((Path(step.target).name, step.sources, step.made_with))
        return self.folder / hashlib.sha256(how.encode()).hexdigest()


def _hash_of_files(paths):
    """The hash of names and contents. A file that the compiler read may be missing now."""
    found = hashlib.sha256()
    for path in map(Path, paths):
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"
        found.update(f"{path} {content}\n".encode())
    return found.hexdigest()
