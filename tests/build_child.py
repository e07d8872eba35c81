"""What setup.py builds with, found out in a process of its own, in a folder that has setup.py, pyx and the headers.

``python build_child.py build FOLDER`` builds the smallest module into a folder. ``python build_child.py commands``
reads a JSON list of environments and prints, for each, the words of all commands of the compiler.
"""

import json
import os
import runpy
import sys

from setuptools import setup

MADE = runpy.run_path("setup.py")
SMALLEST = "_cpu_features", "pyx/cpu_features.pyx"


class Commands(MADE["BuildExt"]):
    """Prints what a build would run, in the place of running it."""

    def build_extensions(self):
        self.drop_fast_math()
        words = list(self.extensions[0].extra_compile_args)
        for name in self.compiler.executables:
            words += getattr(self.compiler, name, None) or []
        print(json.dumps(words))


def build(kind, *options):
    setup(
        name="convgrad_cy",
        ext_modules=[MADE["extension"](*SMALLEST)],
        cmdclass={"build_ext": kind},
        script_args=["-q", "build_ext", "--build-lib", *options, "--build-temp", "temp"],
    )


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build(MADE["BuildExt"], sys.argv[2])
    else:
        before = dict(os.environ)
        for variables in json.load(sys.stdin):
            os.environ.clear()
            os.environ.update(before | variables)
            build(Commands, "lib")
