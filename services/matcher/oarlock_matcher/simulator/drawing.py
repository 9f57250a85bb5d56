"""Line and bar charts as SVG, written by hand: no plotting library, the same bytes for the same results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import floor, log10

Series = Mapping[str, Sequence[tuple[float, float]]]

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 40, 50
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999", "#882255")
"""Okabe and Ito's palette, which people with any kind of colour vision can tell apart, and one more."""
DASHES = ("", "6 3", "2 2")


def line_chart(title: str, x_label: str, y_label: str, series: Series) -> str:
    """An SVG document with one line for each series of (x, y) points; axes start at zero."""
    points = [point for line in series.values() for point in line]
    x_most = _round_up(max((x for x, _ in points), default=1.0))
    y_most = _round_up(max((y for _, y in points), default=1.0))
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(x: float, y: float) -> str:
        return f"{LEFT + wide * x / x_most:.1f},{TOP + high * (1.0 - y / y_most):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
    ]
    for fifth in range(6):
        x, y = LEFT + wide * fifth / 5, TOP + high * (1.0 - fifth / 5)
        parts += [
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + wide}" y2="{y:.1f}" stroke="#dddddd"/>',
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{y_most * fifth / 5:g}</text>',
            f'<text x="{x:.1f}" y="{TOP + high + 18}" text-anchor="middle">{x_most * fifth / 5:g}</text>',
        ]
    parts += [
        f'<text x="{LEFT + wide / 2:.1f}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_label)}</text>',
        f'<text x="16" y="{TOP + high / 2:.1f}" text-anchor="middle" '
        f'transform="rotate(-90 16 {TOP + high / 2:.1f})">{escape(y_label)}</text>',
    ]
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        dash = DASHES[number // len(COLOURS) % len(DASHES)]
        style = f'stroke="{colour}" stroke-width="2" fill="none"' + (f' stroke-dasharray="{dash}"' if dash else "")
        y = TOP + 10 + 18 * number
        parts += [
            f'<polyline points="{" ".join(place(x, y_) for x, y_ in line)}" {style}/>',
            f'<line x1="{WIDTH - RIGHT + 12}" y1="{y}" x2="{WIDTH - RIGHT + 34}" y2="{y}" {style}/>',
            f'<text x="{WIDTH - RIGHT + 40}" y="{y + 4}">{escape(name)}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _round_up(value: float) -> float:
    """The next of 1, 2, 2.5, 5 × a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return power * next(step for step in (1.0, 2.0, 2.5, 5.0, 10.0) if value <= step * power * (1.0 + 1e-9))


def bar_chart(title: str, x_label: str, bars: Mapping[str, Mapping[str, float]]) -> str:
    """An SVG document with one horizontal bar for each of `bars`, made of its named parts."""
    names = sorted({name for parts in bars.values() for name in parts})
    x_most = _round_up(max((sum(parts.values()) for parts in bars.values()), default=1.0))
    left, step = LEFT + 70, 26
    wide, high = WIDTH - left - RIGHT, step * max(1, len(bars))
    height = TOP + max(high, 18 * len(names)) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="20" y="24" font-size="15">{escape(title)}</text>',
    ]
    for fifth in range(6):
        x = left + wide * fifth / 5
        parts += [
            f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{TOP + high}" stroke="#dddddd"/>',
            f'<text x="{x:.1f}" y="{TOP + high + 18}" text-anchor="middle">{x_most * fifth / 5:g}</text>',
        ]
    for number, (name, amounts) in enumerate(bars.items()):
        y, x = TOP + step * number + 4, float(left)
        parts.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{escape(name[:24])}</text>')
        for at, part in enumerate(names):
            width = wide * amounts.get(part, 0.0) / x_most
            if width > 0:
                colour = COLOURS[at % len(COLOURS)]
                label = f"{escape(name)}, {escape(part)}: {amounts[part]:g}"
                parts.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{step - 8}" fill="{colour}">'
                    f"<title>{label}</title></rect>"
                )
                x += width
    for at, part in enumerate(names):
        y = TOP + 4 + 18 * at
        parts += [
            f'<rect x="{WIDTH - RIGHT + 12}" y="{y}" width="12" height="12" fill="{COLOURS[at % len(COLOURS)]}"/>',
            f'<text x="{WIDTH - RIGHT + 30}" y="{y + 10}">{escape(part)}</text>',
        ]
    parts.append(f'<text x="{left + wide / 2:.1f}" y="{TOP + high + 38}" text-anchor="middle">{escape(x_label)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
