"""What makes a picture hard to read: found on the figure as it is drawn."""

from itertools import pairwise

from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text

#: Words of the longest text that a picture may carry; more is a caption, and stands beside it.
WORDS = 12
#: Pixels by which something may reach beyond the frame, or two labels into each other: rounding.
ROUNDING = 1.0


def texts(figure: Figure) -> list[Text]:
    """Every text that is seen."""
    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]


def colliding_ticks(figure: Figure) -> list[str]:
    """Neighbouring tick labels that touch."""
    figure.draw_without_rendering()
    found = []
    for axes in figure.axes:
        for axis, low, high in ((axes.xaxis, "x0", "x1"), (axes.yaxis, "y0", "y1")):
            ends = sorted(axes.bbox.get_points()[:, "xy".index(low[0])])
            labels = [tick.label1 for tick in axis.get_major_ticks() if tick.label1.get_visible() and tick.label1.get_text()]
            if not axes.axison or any(label.get_rotation() for label in labels):
                continue  # slanted labels stand apart where their boxes do not
            boxes = [(label.get_window_extent(), label.get_text()) for label in labels]
            inside = [(box, text) for box, text in boxes if ends[0] - 1 <= (getattr(box, low) + getattr(box, high)) / 2 <= ends[1] + 1]
            inside.sort(key=lambda one: getattr(one[0], low))
            found += [f"{a} and {b}" for (one, a), (other, b) in pairwise(inside) if getattr(one, high) > getattr(other, low) + ROUNDING]
    return found


def sentences(figure: Figure) -> list[str]:
    """Texts that belong into the caption."""
    return [text.get_text() for text in texts(figure) if len(text.get_text().split()) > WORDS]


def cut_off(figure: Figure) -> bool:
    """Whether something of a figure that has been drawn reaches beyond the frame that is saved."""
    whole = figure.get_tightbbox()  # in inches
    width, height = figure.get_size_inches()
    slack = ROUNDING / figure.dpi
    return whole.x0 < -slack or whole.y0 < -slack or whole.x1 > width + slack or whole.y1 > height + slack


def error_bars(figure: Figure) -> int:
    """Error bars that have a length."""
    drawn = [bars for axes in figure.axes for container in axes.containers if isinstance(container, ErrorbarContainer) for bars in container.lines[2]]
    return sum(bool((abs(end - start) > 0).any()) for bars in drawn for start, end in bars.get_segments())


def problems(figure: Figure) -> dict[str, object]:
    """What is wrong with a figure, by what it is; empty where it is legible."""
    found = {"ticks that touch": colliding_ticks(figure), "sentences": sentences(figure), "cut off": cut_off(figure)}
    return {name: what for name, what in found.items() if what}
