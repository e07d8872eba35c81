"""The parser of ``python -m convgrad_cy``, and the exit status of each command.

An error is one line on standard error, never a traceback. ``STATUSES`` lists the exit statuses.
"""

import argparse

import convgrad_cy
from convgrad_cy.cli import compile, output
from convgrad_cy.cli.check import command as checking
from convgrad_cy.cli.demo import plot, training
from convgrad_cy.cli.explain import BadProblem, add_arguments, print_explanation
from convgrad_cy.cli.info import print_info
from convgrad_cy.cli.operations import OPERATIONS, table
from convgrad_cy.cli.run import BadInput, run

STATUSES = """\
exit status:
  0    all is well; of run: OUT.npz is in place, even if the report of it could not be printed
  1    the check or the demo found something wrong
  2    bad input, a file that cannot be written, a compiler that is missing, or a report that cannot be printed
  130  interrupted, as by Ctrl-C; nothing is said then
  141  nobody reads the report any more, as behind "| head"; nothing is said then
"""
#: Exit status that a shell gives a process that a closed pipe has ended: 128 plus the number of SIGPIPE.
READER_LEFT = 141
#: Exit status after Ctrl-C: 128 plus the number of SIGINT.
INTERRUPTED = 130

#: Default limit of an array: more bytes than a layer has, but too few to exhaust a machine.
MAX_BYTES = 8 << 30
#: Least value of --max-bytes: smaller arrays are never refused.
LEAST_MAX_BYTES = 64 << 10

CHECK_DESCRIPTION = """\
Compare every instruction set, type and function of this installation with the definition, in exact integers and in
real numbers; then several threads with one, a forked process with its parent, and PyTorch, JAX and CuPy with
themselves if they are installed. It takes less than a minute on two cores. Paste its output into a report of a bug.
Exit status 1 if anything is wrong.
"""

RUN_DESCRIPTION = """\
Run one operation on the arrays in IN.npz, and write its result to OUT.npz.

IN.npz holds the operation's arrays under their names; other arrays in it are left alone. FILE.json holds an object
with the operation's keywords, such as {"stride": 2, "padding": [[0, 1], [1, 1]]}. IN.npz must be a plain file, since
an archive is read from its end; FILE.json may be a pipe, and has at most 1 MiB. bfloat16 arrays are elements of two
bytes without a type (numpy dtype "V2"), as numpy.savez writes them; they need ml_dtypes.

OUT.npz is written whole or not at all: under another name in its folder, and renamed when it is on the disk.

A framework's operation takes its attributes by the framework's names. input_size of MindSpore, input_sizes and
filter_sizes of TensorFlow, and oneDNN's shapes are among them, or else an array in IN.npz, which comes first.
"""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        """Print one line and exit with status 2. argparse would print its usage first."""
        output.complain(f"{self.prog}: error: {message}")
        self.exit(2)

    def print_help(self, file=None):
        """Print the help as a report. argparse would ignore that it cannot be printed."""
        output.line(self.format_help(), end="")


class Version(argparse.Action):
    """Prints the version as a report. argparse's own action would ignore that it cannot be printed."""

    def __call__(self, parser, namespace, values, option_string=None):
        output.line(f"{parser.prog} {convgrad_cy.__version__}")
        parser.exit()


def natural_number(least):
    def parse(text):
        number = int(text)
        if number < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {number}")
        return number

    parse.__name__ = "whole number"  # the name of the type in argparse's message
    return parse


def make_parser():
    parser = Parser(
        prog="convgrad_cy",
        description="Gradients of convolution for NumPy and CuPy arrays.",
        epilog=STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=Version, nargs=0, help="print the version and stop")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    about = "versions, instruction set, threads, dtypes and GPU of this installation"
    commands.add_parser("info", help=about, description=f"Print {about}.")

    about = "compare every instruction set, type and function of this installation with the definition"
    command = commands.add_parser("check", help=about, description=CHECK_DESCRIPTION)
    checking.add_arguments(command)

    about = "train a small convolutional network on handwritten digits, and check every gradient"
    command = commands.add_parser(
        "demo",
        help=about,
        description=f"{about.capitalize()}. Exit status 1 if a gradient is wrong or the test accuracy is below 97%.",
    )
    command.add_argument("--plot", metavar="FILE", help="save learning curves and reconstructions (needs matplotlib)")
    command.add_argument("--epochs", type=natural_number(1), default=30, help="passes over the digits (%(default)s)")
    command.add_argument("--seed", type=natural_number(0), default=0, help="of weights and batches (%(default)s)")

    about = "the kernels that a call would run on this machine's CPU, and why others are rejected"
    add_arguments(commands.add_parser("explain", help=about))

    about = "compile the GPU kernels of layers ahead; this needs no GPU"
    compile.add_arguments(commands.add_parser("compile", help=about))

    command = commands.add_parser(
        "run",
        help="run one operation on arrays from a file",
        description=RUN_DESCRIPTION,
        epilog=f"operations, their arrays and result, and their attributes:\n{table()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("operation", metavar="OP", choices=OPERATIONS, help="one of those below")
    command.add_argument("--attrs", metavar="FILE.json", help="keywords of the operation")
    command.add_argument(
        "--max-bytes",
        metavar="N",
        type=natural_number(LEAST_MAX_BYTES),
        default=MAX_BYTES,
        help="refuse an array, in IN.npz with its header or computed, of more bytes (%(default)s)",
    )
    command.add_argument("source", metavar="IN.npz")
    command.add_argument("target", metavar="OUT.npz")
    return parser


def run_command(options, prefix):
    """Run the command ``run`` and return its exit status, which is 0 once the file is in place."""
    lines = run(options.operation, options.attrs, options.source, options.target, options.max_bytes)
    try:
        for line in lines:
            output.line(line)
    except output.ReaderLeft:
        pass
    except output.NotPrinted as error:
        in_place = f"{options.target!r} is in place, but the report of it cannot be printed"
        output.complain(f"{prefix}: warning: {in_place}: {error}")
    return 0


def demo_command(options):
    """Run the command ``demo`` and return its exit status."""
    if options.plot is not None:
        plot.check(options.plot)
    return 0 if training.demo(options.epochs, options.seed, options.plot) else 1


def main(arguments=None):
    """Run a command and return its exit status, one of ``STATUSES``."""
    parser = make_parser()
    prefix = parser.prog
    try:
        options = parser.parse_args(arguments)
        prefix = f"{parser.prog} {options.command}"
        if options.command == "info":
            print_info()
        elif options.command == "explain":
            print_explanation(options)
        elif options.command == "compile":
            compile.compile_layers(options)
        elif options.command == "run":
            return run_command(options, prefix)
        elif options.command == "check":
            return 0 if checking.check(options.json) else 1
        else:
            return demo_command(options)
    except (BadInput, BadProblem, compile.NotCompiled, plot.NoPlot, checking.NoReport) as error:
        output.complain(f"{prefix}: error: {output.one_line(error)}")
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    except output.ReaderLeft:
        return READER_LEFT
    except output.NotPrinted as error:
        output.complain(f"{prefix}: error: the report cannot be printed: {error}")
        return 2
    return 0
