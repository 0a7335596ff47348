"""Colour, marker and line of each row, the same in every figure."""

import itertools
from typing import Any

from poet.methods import all_rows

#: Color, marker and line of rows without a budget. C0 to C9 are the palette of :func:`analyses.common.plotting.pyplot`.
_ALONE = {
    "adamw": ("black", "s", "-"),
    "adamw-two-rates": ("0.5", "s", "--"),
    "galore": ("C1", "D", "-."),
    "galore-two-rates": ("C5", "D", "--"),
    "lora-r64": ("C2", "^", ":"),
    "muon": ("C4", "P", ":"),
}
#: Palette and markers of rows that differ in their budget, by the prefix of their keys; a larger budget has a darker shade.
_BUDGETS = {"poet-bs": ("Blues", ("p", "h", "o")), "poet-fs": ("Reds", ("<", ">", "v"))}
_LINES = (":", "--", "-", "-.")
#: Looks that added rows take in turn.
_ADDED = [(f"C{6 + i % 4}", *marked) for i, marked in enumerate(itertools.product("*Xd1", ("-.", "--", ":", "-")))]


def shades(palette: str, count: int) -> list[tuple[float, float, float]]:
    """Colors of one of seaborn's palettes, in its order."""
    import seaborn  # at the first figure, as :func:`analyses.common.plotting.pyplot`

    return seaborn.color_palette(palette, count)


def look(row: str) -> dict[str, Any]:
    """How a row of ``poet.methods.all_rows()`` is drawn: ``color``, ``marker`` and ``linestyle`` of Matplotlib."""
    if row in _ALONE:
        return _named(*_ALONE[row])
    for prefix, (palette, markers) in _BUDGETS.items():
        own = [key for key in all_rows() if key.startswith(prefix)]
        if row in own:
            place = own.index(row)
            shade = shades(palette, len(own) + 2)[2 + place]
            return _named(shade, markers[place % 3], _LINES[(place % 3 + place // 3) % 4])
    added = [key for key in all_rows() if key not in _ALONE and not key.startswith(tuple(_BUDGETS))]
    return _named(*_ADDED[added.index(row) % len(_ADDED)])


def _named(color: Any, marker: str, linestyle: str) -> dict[str, Any]:
    return {"color": color, "marker": marker, "linestyle": linestyle}
