"""Draws the three pictures of docs/arrays.md and docs/design.md: python docs/images/draw.py (needs matplotlib)."""

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

FOLDER = Path(__file__).parent
RED, GREEN, YELLOW = "#dd4455", "#228833", "#b09a10"
TAPS = (RED, GREEN, YELLOW)
PALE = ("#f8c4ca", "#b4d9b8", "#efe6b0")


def panels(count, height, title, limits):
    """A figure with panels side by side, without axes."""
    figure = Figure(figsize=(4.2 * count, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=11)
    found = list(figure.subplots(1, count, squeeze=False).flat)
    for panel in found:
        panel.set_axis_off()
        panel.set_xlim(limits[0], limits[1])
        panel.set_ylim(limits[2], limits[3])
        panel.set_aspect("equal")
    return figure, found


def cell(panel, left, bottom, text, colour="white", dashed=False):
    style = {"linestyle": "--", "edgecolor": "gray"} if dashed else {"edgecolor": "black"}
    panel.add_patch(Rectangle((left, bottom), 1, 1, facecolor=colour, linewidth=0.9, zorder=2, **style))
    panel.text(left + 0.5, bottom + 0.5, text, ha="center", va="center", fontsize=8, zorder=3)


def row(panel, name, bottom, texts, colours=None, left=0):
    panel.text(left - 0.3, bottom + 0.5, name, ha="right", va="center", fontsize=10, fontweight="bold")
    for number, text in enumerate(texts):
        cell(panel, left + number, bottom, text, (colours or {}).get(number, "white"))


def arrow(panel, begin, end, colour):
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
    panel.annotate("", end, begin, arrowprops=style, zorder=4)


def caption(panel, text):
    panel.text(0.5, -0.02, text, transform=panel.transAxes, ha="center", va="top", fontsize=9)


def gathers():
    """Stride 1, three taps, padding 1: the terms of one element of y, dx and dw."""
    figure, (forward, data, weight) = panels(
        3, 3.1, "One element of each result, and its terms (three taps, stride 1, padding 1)", (-1.2, 6.2, -0.2, 4.2)
    )
    gray = "#dddddd"
    for panel, inputs, outputs, shifts in (
        (forward, "x", "y", (-1, 0, 1)),
        (data, "dy", "dx", (1, 0, -1)),
    ):
        row(panel, inputs, 3, range(6), {3 + shift: PALE[tap] for tap, shift in enumerate(shifts)})
        row(panel, outputs, 0, range(6), {3: gray})
        for tap, shift in enumerate(shifts):
            arrow(panel, (3.5 + shift, 3), (3.5 + shift / 4, 1), TAPS[tap])
            panel.text(3.5 + 1.1 * shift, 2.05, f"w[{tap}]", color=TAPS[tap], ha="center", fontsize=9, zorder=5,
                       bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6})  # fmt: skip
    forward.set_title("forward: conv", fontsize=10)
    caption(forward, "y[3] = w[0]·x[2] + w[1]·x[3] + w[2]·x[4]")
    data.set_title("gradient of the input: conv_backward_data", fontsize=10)
    caption(data, "dx[3] = w[0]·dy[4] + w[1]·dy[3] + w[2]·dy[2]")

    row(weight, "x", 3, range(6), {position + 1: PALE[2] for position in range(5)})
    row(weight, "dy", 1.6, range(6), dict.fromkeys(range(5), PALE[2]))
    for position in range(5):
        weight.plot((position + 1.5, position + 0.5), (3, 2.6), color="black", linewidth=1.2, zorder=4)
    row(weight, "dw", 0, range(3), {2: PALE[2]}, left=1.5)
    arrow(weight, (4, 1.6), (4, 1), "black")
    weight.set_title("gradient of the weight: conv_backward_filter", fontsize=10)
    caption(weight, "dw[2] = x[1]·dy[0] + x[2]·dy[1] + … + x[5]·dy[4]")
    return figure


def phases():
    """Stride 2, three taps, padding 1: the data gradient, and its two phases."""
    figure, (whole, even, odd) = panels(
        3, 2.6, "Stride phases of a data gradient (three taps, stride 2, padding 1)", (-1, 8.4, -0.2, 4.2)
    )
    colours = {position: ("#cfe0f0", "#f8d0d4")[position % 2] for position in range(8)}
    row(whole, "dy", 3, range(4), left=2)
    row(whole, "dx", 0, range(8), colours)
    for position in range(4):
        for tap in range(3):
            if 0 <= (reached := 2 * position + tap - 1) < 8:
                arrow(whole, (position + 2.5, 3), (reached + 0.5, 1), TAPS[tap])
    whole.set_title("all positions of dx", fontsize=10)
    caption(whole, "dy[p]·w[t] is added to dx[2p + t − 1]; red w[0], green w[1], yellow w[2]")

    row(even, "dy", 3, range(4), left=2)
    row(even, "dx", 0, range(0, 8, 2), dict.fromkeys(range(4), colours[0]), left=2)
    for position in range(4):
        arrow(even, (position + 2.5, 3), (position + 2.5, 1), TAPS[1])
    even.set_title("even phase: tap 1 alone", fontsize=10)
    caption(even, "dx[2k] = w[1]·dy[k]")

    row(odd, "dy", 3, range(4), left=2)
    row(odd, "dx", 0, range(1, 8, 2), dict.fromkeys(range(4), colours[1]), left=2)
    for position in range(4):
        arrow(odd, (position + 2.5, 3), (position + 2.62, 1), TAPS[2])
        if position:
            arrow(odd, (position + 2.5, 3), (position + 1.38, 1), TAPS[0])
    odd.set_title("odd phase: taps 0 and 2", fontsize=10)
    caption(odd, "dx[2k + 1] = w[0]·dy[k + 1] + w[2]·dy[k]")
    return figure


def transposed():
    """Stride 2, four taps, padding 1: each input element adds a scaled copy of the filter to the output."""
    figure, (panel,) = panels(1, 4.1, "Transposed convolution (four taps, stride 2, padding 1)", (-2.4, 8.2, -1.4, 6.4))
    figure.set_size_inches(6.4, 4.6)
    names = "abc"
    for number, name in enumerate(names):
        cell(panel, 2 * number + 2, 5.2, name, PALE[number])
    panel.text(1.7, 5.7, "x", ha="right", va="center", fontsize=10, fontweight="bold")
    for number, name in enumerate(names):
        for tap in range(4):
            cell(panel, 2 * number + tap, 3.4 - 1.1 * number, f"{name}·w{tap}", PALE[number])
        arrow(panel, (2 * number + 2.5, 5.2), (2 * number + 2.5, 4.4 - 1.1 * number), TAPS[number])
    for position in range(8):
        is_cropped = position in (0, 7)
        cell(panel, position, -0.7, "" if is_cropped else f"{position - 1}", "white", is_cropped)
    panel.text(-0.3, 2.8, "copies of\nthe filter", ha="right", va="center", fontsize=9)
    panel.text(-0.3, -0.2, "y", ha="right", va="center", fontsize=10, fontweight="bold")
    panel.text(4, 0.55, "y is the sum of each column", ha="center", va="center", fontsize=9)
    caption(panel, "Copies start two positions apart (stride 2). Padding 1 crops one element at each end:\n"
                   "(3 − 1)·2 + 4 − 2·1 = 6 elements of y.")  # fmt: skip
    return figure


if __name__ == "__main__":
    for draw in (gathers, phases, transposed):
        draw().savefig(FOLDER / f"{draw.__name__}.png", dpi=110)
