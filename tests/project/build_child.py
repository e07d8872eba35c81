"""The tools of a setup.py, run in a process of its own, in a folder that has setup.py, pyx and the headers.

``python build_child.py build FOLDER`` builds the smallest module into a folder. ``kernels FOLDER`` builds the kernels
from the sources in pyx, for the rows that the environment asks for, and prints the files that it translates, compiles
and links. ``commands`` reads a JSON list of environments and prints, for each, the words of all commands of the
compiler. ``editable`` prints the modules of an editable install.
"""

import json
import os
import runpy
import sys
from functools import partial

from setuptools import setup

MADE = runpy.run_path("setup.py")
SMALLEST = MADE["extension"]("_cpu_features", ["pyx/cpu_features.pyx"])
SOURCES = [source for source in MADE["KERNELS"] if os.path.exists(source)]
KERNELS = [MADE["extension"](f"_kernels_{isa}", SOURCES, isa) for isa in MADE["wanted_isas"]() or MADE["rows"]()]


class Commands(MADE["BuildExt"]):
    """Prints the commands of a build instead of running them."""

    def build_extensions(self):
        MADE["build_compiler"].drop_fast_math(self.compiler)
        words = list(self.extensions[0].extra_compile_args)
        for name in self.compiler.executables:
            words += getattr(self.compiler, name, None) or []
        print(json.dumps(words))


class Telling(MADE["BuildExt"]):
    """Prints the files that it makes."""

    def steps(self):
        return [step._replace(make=partial(self.tell, step)) for step in super().steps()]

    def tell(self, step):
        before = os.stat(step.target).st_mtime_ns if os.path.exists(step.target) else 0
        step.make()
        if os.stat(step.target).st_mtime_ns != before:
            made = "/".join(step.target.split("/")[-2:])
            print(f"made {made}\n", end="")  # one write, since others print, too


class Editable(MADE["BuildExt"]):
    """Prints the modules that it would build instead of building them."""

    def finalize_options(self):
        self.editable_mode = True
        super().finalize_options()

    def steps(self):
        print(json.dumps([ext.name for ext in self.extensions]))
        self.extensions = []  # nothing to copy
        return []


def build(kind, modules, *options):
    setup(
        name="convgrad_cy",
        ext_modules=modules,
        cmdclass={"build_ext": kind},
        script_args=["-q", "build_ext", "--build-lib", *options, "--build-temp", "temp"],
    )


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build(MADE["BuildExt"], [SMALLEST], sys.argv[2])
    elif sys.argv[1] == "kernels":
        build(Telling, KERNELS, *sys.argv[2:])
    elif sys.argv[1] == "editable":
        build(Editable, [*KERNELS, SMALLEST], "lib")
    else:
        before = dict(os.environ)
        for variables in json.load(sys.stdin):
            os.environ.clear()
            os.environ.update(before | variables)
            build(Commands, [SMALLEST], "lib")
