"""Learning curves and reconstructions, as a picture. The only file that needs matplotlib, and only for ``--plot``."""

from pathlib import Path

from convgrad_cy import atomic_file
from convgrad_cy.cli.output import reason

COLUMNS = 10


class NoPlot(Exception):
    """The picture cannot be made; the message has the reason."""


def check(path):
    """Raise `NoPlot` if ``save(path, ...)`` could not work.

    Called before the training, so that nobody waits in vain for a picture.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NoPlot(f"--plot needs matplotlib (pip install matplotlib): {error}") from error
    supported = Figure().canvas.get_supported_filetypes()
    if Path(path).suffix[1:].lower() not in supported:
        raise NoPlot(f"--plot must end in one of .{', .'.join(sorted(supported))}, not {path!r}")
    try:
        atomic_file.check(path)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise NoPlot(f"--plot cannot be written to {path!r}: {reason(error)}") from error


def save(path, history, images, drawings):
    """Save the picture: ``history`` maps each curve's name to its values, one per epoch. `NoPlot` if that fails."""
    # Figure, not pyplot: no window system, no global state.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6), layout="constrained")
    curves, pictures = figure.subfigures(2, 1, height_ratios=(3, 2))
    for axes, (name, values) in zip(curves.subplots(1, len(history)), history.items(), strict=True):
        axes.plot(range(1, len(values) + 1), values)
        axes.set(title=name, xlabel="epoch")
        axes.grid(alpha=0.3)
    pictures.suptitle("test images (above) and what the network draws from 16 numbers (below)")
    for row, digits in zip(pictures.subplots(2, COLUMNS), (images, drawings), strict=True):
        for axes, digit in zip(row, digits[:COLUMNS, 0], strict=True):
            axes.imshow(digit, cmap="gray_r", vmin=0, vmax=1)
            axes.set_axis_off()
    try:
        with atomic_file.replaced(path) as file:
            figure.savefig(file, dpi=120, format=Path(path).suffix[1:].lower())
    except (OSError, MemoryError) as error:
        raise NoPlot(f"--plot cannot be written to {path!r}: {reason(error)}") from error
