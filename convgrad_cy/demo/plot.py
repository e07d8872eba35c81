"""Learning curves and reconstructions, as a picture. The only file that needs matplotlib, and only for ``--plot``."""

from pathlib import Path

COLUMNS = 10


def check(path):
    """Raise ImportError, ValueError or OSError where ``save(path, ...)`` could not work.

    Called before the training, so that nobody waits for a picture that will not come.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"--plot needs matplotlib (pip install matplotlib): {error}") from error
    path = Path(path)
    supported = Figure().canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in supported:
        raise ValueError(f"--plot must end in one of .{', .'.join(sorted(supported))}, not {str(path)!r}")
    if path.is_dir() or not path.parent.is_dir():
        raise OSError(f"--plot cannot be written: {str(path)!r} is a folder, or lies in a folder that does not exist")


def save(path, history, images, drawings):
    """Save the picture: ``history`` maps each curve's name to its values, one per epoch."""
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
    figure.savefig(path, dpi=120)
