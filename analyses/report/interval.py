"""A claim's effect with its interval, against the region where the claim holds, as a small drawing."""

import math

from markupsafe import Markup

from analyses.report.numbers import TINY, between, number

WIDTH, HEIGHT, MARGIN = 180, 22, 10


def interval_drawing(effect: float, low: float, high: float, region: tuple[float, float]) -> Markup:
    """An inline SVG of an effect, its interval (which may be infinite) and its region; empty if there is no effect or no interval."""
    if any(map(math.isnan, (effect, low, high))):
        return Markup("")
    finite = [0.0 if abs(p) < TINY else p for p in (effect, low, high, *region) if math.isfinite(p)]
    room = 0.15 * (max(finite) - min(finite)) or 0.5 * abs(min(finite)) or 1.0
    left, right = min(finite) - room, max(finite) + room

    def x(value: float) -> float:
        inside = min(max(value, left), right)
        return round(MARGIN + (inside - left) / (right - left) * (WIDTH - 2 * MARGIN), 1)

    middle = HEIGHT / 2
    start = x(region[0]) if math.isfinite(region[0]) else 0
    end = x(region[1]) if math.isfinite(region[1]) else WIDTH
    arrows = [
        f'<path d="M{tip} {middle}l{-step} -4v8z"/>'
        for beyond, tip, step in ((low < left, 2, -7), (high > right, WIDTH - 2, 7))
        if beyond
    ]
    begin, stop = (2 if low < left else x(low)), (WIDTH - 2 if high > right else x(high))
    said = f"effect {number(effect)}, 95% interval {number(low)} to {number(high)}; the claim holds for {between(*region)}"
    return Markup(
        f'<svg class="interval" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{said}"><rect class="region" x="{start}" y="1" width="{max(2, round(end - start, 1))}" '
        f'height="{HEIGHT - 2}"/><path class="axis" d="M0 {middle}H{WIDTH}"/><path class="line" d="M{begin} '
        f'{middle}H{stop}"/>{"".join(arrows)}<circle cx="{x(effect)}" cy="{middle}" r="4"/></svg>'
    )
