"""A folder that builds share: what one of them has made, another takes, where it was made from the same."""

import hashlib
import shutil
import tempfile
from pathlib import Path


class Store:
    """Made files, found by the contents of the files that the compiler has read.

    A file lies in ``HOW/WHAT/``. ``HOW`` is the hash of flags, versions and the names of target and sources, ``WHAT``
    that of the contents. Only the compiler knows which files it reads, so their names are kept with the file: a file
    with the same ``HOW`` is taken if these names have the same contents now.
    """

    def __init__(self, folder):
        self.folder = Path(folder)

    def take(self, step):
        """Bring the step's file from the folder; the names of what it was made from, or None if it is not there."""
        for kept in self._alike(step).glob("*/read"):
            read = kept.read_text().split()
            if kept.parent.name == _hash_of_files(read):
                shutil.copyfile(kept.with_name("made"), step.target)  # newer than all that it was made from
                return read
        return None

    def keep(self, step, read):
        """Put the step's file into the folder, with the names of what it was made from."""
        kept = self._alike(step) / _hash_of_files(read)
        kept.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=self.folder))
        shutil.copyfile(step.target, unfinished / "made")
        (unfinished / "read").write_text("\n".join(read))
        try:
            unfinished.rename(kept)  # whole from the beginning: another build may look for it at this moment
        except OSError:  # another build was faster, or this one was told to make everything anew
            shutil.rmtree(unfinished)

    def _alike(self, step):
        how = repr((Path(step.target).name, step.sources, step.made_with))
        return self.folder / hashlib.sha256(how.encode()).hexdigest()


def _hash_of_files(paths):
    """The hash of names and contents. A file may be missing now that was read then."""
    found = hashlib.sha256()
    for path in map(Path, paths):
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"
        found.update(f"{path} {content}\n".encode())
    return found.hexdigest()
