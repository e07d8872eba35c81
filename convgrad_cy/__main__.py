"""The command line: ``python -m convgrad_cy``."""

import argparse
import sys

from convgrad_cy.demo import plot, training
from convgrad_cy.info import one_line, print_info
from convgrad_cy.operations import OPERATIONS, table
from convgrad_cy.run_file import BadInput, run

RUN_DESCRIPTION = """\
Run one operation on the arrays in IN.npz, and write its result to OUT.npz.

IN.npz holds the operation's arrays under their names; other arrays in it are left alone. FILE.json holds an object
with the operation's keywords, such as {"stride": 2, "padding": [[0, 1], [1, 1]]}. bfloat16 arrays are elements of two
bytes without a type (numpy dtype "V2"), as numpy.savez writes them; they need ml_dtypes.

A framework's operation takes its attributes by the framework's names. input_size of MindSpore, input_sizes and
filter_sizes of TensorFlow, and oneDNN's shapes are among them, or else an array in IN.npz, which comes first.
"""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        """One line and status 2; argparse would print its usage before it."""
        self.exit(2, f"{self.prog}: error: {message}\n")


def natural_number(least):
    def parse(text):
        number = int(text)
        if number < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {number}")
        return number

    parse.__name__ = "whole number"  # what argparse calls the type in its message
    return parse


def make_parser():
    parser = Parser(prog="convgrad_cy", description="Gradients of convolution for NumPy and CuPy arrays.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    about = "versions, instruction set, threads, dtypes and GPU of this installation"
    commands.add_parser("info", help=about, description=f"Print {about}.")

    about = "train a small convolutional network on handwritten digits, and check every gradient"
    command = commands.add_parser(
        "demo",
        help=about,
        description=f"{about.capitalize()}. Exit status 1 if a gradient is wrong or the test accuracy is below 97 %%.",
    )
    command.add_argument("--plot", metavar="FILE", help="save learning curves and reconstructions (needs matplotlib)")
    command.add_argument("--epochs", type=natural_number(1), default=30, help="passes over the digits (%(default)s)")
    command.add_argument("--seed", type=natural_number(0), default=0, help="of weights and batches (%(default)s)")

    command = commands.add_parser(
        "run",
        help="run one operation on arrays from a file",
        description=RUN_DESCRIPTION,
        epilog=f"operations, their arrays and result, and their attributes:\n{table()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("operation", metavar="OP", choices=OPERATIONS, help="one of those below")
    command.add_argument("--attrs", metavar="FILE.json", help="keywords of the operation")
    command.add_argument("source", metavar="IN.npz")
    command.add_argument("target", metavar="OUT.npz")
    return parser


def main(arguments=None):
    """Run a command; the exit status is 0, 1 (the demo found something wrong) or 2 (bad input)."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    prefix = f"{parser.prog} {options.command}: error:"
    if options.command == "info":
        print_info()
    elif options.command == "run":
        try:
            run(options.operation, options.attrs, options.source, options.target)
        except BadInput as error:
            print(prefix, one_line(error), file=sys.stderr)
            return 2
    else:
        if options.plot is not None:
            try:
                plot.check(options.plot)
            except (ImportError, ValueError, OSError) as error:
                print(prefix, one_line(error), file=sys.stderr)
                return 2
        return 0 if training.demo(options.epochs, options.seed, options.plot) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
