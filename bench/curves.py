"""Draws the growth curves as an SVG: cost against the number of appointments, which is on a logarithmic scale."""

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 720, 380
LEFT, RIGHT, TOP, BOTTOM = 60, 150, 46, 56
_INK, _PALE = "#1f2933", "#cbd2d9"
_COLOURS = ("#0b69a3", "#3f9142", "#b44d12")
_STYLE = "text{font:13px system-ui,sans-serif;fill:#1f2933}.small{font-size:12px;fill:#52606d}"

Curve = Sequence[tuple[float, float, float, float]]  # x, y, lowest, highest


def draw(
    title: str, x_label: str, curves: Mapping[str, Curve], limit: float, x_notes: Sequence[tuple[float, str]]
) -> str:
    points = [point for curve in curves.values() for point in curve]
    lowest, highest = (edge(math.log10(x) for x, *_ in points) for edge in (min, max))
    tallest = math.ceil(max(limit * 1.2, *(point[3] for point in points)) * 4) / 4

    def x_of(value: float) -> float:
        return LEFT + (math.log10(value) - lowest) / max(highest - lowest, 1e-9) * (WIDTH - LEFT - RIGHT)

    def y_of(value: float) -> float:
        return HEIGHT - BOTTOM - value / tallest * (HEIGHT - TOP - BOTTOM)

    shapes = [
        f'<text x="{LEFT}" y="24" font-weight="600">{escape(title)}</text>',
        *_y_axis(tallest, y_of),
        *(_x_note(x_of(x), note) for x, note in x_notes),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_label, "middle"),
        _line(LEFT, y_of(limit), WIDTH - RIGHT, y_of(limit), "#ab091e", 'stroke-dasharray="6 4"'),
        _text(WIDTH - RIGHT + 8, y_of(limit) + 4, f"at most {limit:g}"),
    ]
    for curve, colour in zip(curves.values(), _COLOURS, strict=False):
        shapes += _curve(curve, colour, x_of, y_of)
    below = y_of(limit) + 28
    shapes += _legend(list(curves), below if below + 20 * len(curves) <= HEIGHT - BOTTOM else TOP + 10)
    body = "\n".join(shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">\n<style>{_STYLE}</style>\n<rect width="100%" height="100%" fill="#fff"/>\n'
        f"{body}\n</svg>\n"
    )


def _curve(curve: Curve, colour: str, x_of: Callable[[float], float], y_of: Callable[[float], float]) -> list[str]:
    path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y, _, _ in curve)
    shapes = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>']
    for x, y, low, high in curve:
        shapes.append(_line(x_of(x), y_of(low), x_of(x), y_of(high), colour, 'stroke-opacity="0.5"'))
        shapes.append(f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="4" fill="{colour}"/>')
    return shapes


def _y_axis(tallest: float, y_of: Callable[[float], float]) -> list[str]:
    step = 0.25 if tallest <= 2 else 1
    shapes = []
    for number in range(int(tallest / step) + 1):
        shapes.append(_line(LEFT, y_of(number * step), WIDTH - RIGHT, y_of(number * step), _PALE))
        shapes.append(_text(LEFT - 8, y_of(number * step) + 4, f"{number * step:g}", "end"))
    return shapes


def _x_note(x: float, note: str) -> str:
    return _line(x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 5, _INK) + _text(x, HEIGHT - BOTTOM + 19, note, "middle")


def _legend(names: Sequence[str], y: float) -> list[str]:
    shapes = []
    for number, (name, colour) in enumerate(zip(names, _COLOURS, strict=False)):
        at = y + 20 * number
        shapes.append(f'<circle cx="{WIDTH - RIGHT + 13}" cy="{at - 4:.1f}" r="4" fill="{colour}"/>')
        shapes.append(_text(WIDTH - RIGHT + 24, at, name))
    return shapes


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" {more}/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="small" text-anchor="{anchor}">{escape(text)}</text>'
