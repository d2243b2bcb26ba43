"""What a run leaves behind: the table on the terminal, the JSON, and in docs the same table and the curves.

The documents are made from the JSON and from nothing else: `bench/run.py --report` makes them again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import curves
from growth import TARGET, Point
from measuring import Row

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "bench/results"
DOCUMENT = ROOT / "docs/performance.md"
CURVES = ROOT / "docs/performance-growth.svg"
MOST_OTHERS = 0.15
BEGIN, END = "<!-- figures: written by make bench -->", "<!-- end of figures -->"


def document(machine: Mapping[str, Any], rows: Sequence[Row], points: Sequence[Point]) -> dict[str, Any]:
    return {
        "machine": dict(machine),
        "rows": [{**asdict(row), "passed": row.passed} for row in rows],
        "growth": [asdict(point) for point in points],
    }


def table(found: Mapping[str, Any]) -> str:
    """For a terminal: one line a case, its figures below it."""
    lines = []
    for row in found["rows"]:
        verdict = {True: "met", False: "NOT MET", None: ""}[row["passed"]]
        if verdict and row["low"] is not None and row["low"] <= row["target"] <= row["high"]:
            verdict += ", within the error"
        lines.append(f"{row['title']:<88} {_value(row):>9} {_error(row):>6} {_target(row):>10} {verdict}")
        if row["figures"]:
            lines.append(f"    {row['figures']}")
    judged = [row["passed"] for row in found["rows"] if row["passed"] is not None]
    return "\n".join([*lines, "", f"{sum(judged)} of {len(judged)} targets met. {_machine(found['machine'])}"])


def write_json(found: Mapping[str, Any], name: str) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(found, indent=1) + "\n")
    return path


def write_documents(found: Mapping[str, Any]) -> None:
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    DOCUMENT.write_text(f"{before}{BEGIN}\n{_markdown(found)}\n{END}{after}")
    if found["growth"]:
        CURVES.write_text(_drawn(found["growth"]))


def _markdown(found: Mapping[str, Any]) -> str:
    lines = ["| case | result | target | spread | met | figures |", "|---|---|---|---|---|---|"]
    for row in found["rows"]:
        met = {True: "yes", False: "**no**", None: ""}[row["passed"]]
        lines.append(f"| {row['title']} | {_value(row)} | {_target(row)} | {_spread(row)} | {met} | {row['figures']} |")
    if found["growth"]:
        lines += ["", f"![Cost of a search and of a booking on a growing database]({CURVES.name})"]
    return "\n".join([*lines, "", _machine(found["machine"])])


def _drawn(growth: Sequence[Mapping[str, Any]]) -> str:
    first = (10_000.0, 1.0, 1.0, 1.0)
    drawn = {
        name: [first, *((point["appointments"], *point[key]) for point in growth)]
        for name, key in (("a search", "search"), ("a warm search", "warm_search"), ("a booking", "booking"))
    }
    notes = [(10_000.0, "10,000 in 1")]
    notes += [(point["appointments"], f"{_short(point['appointments'])} in {point['practices']:,}") for point in growth]
    kept = notes if len(notes) < 4 else [notes[0], *notes[2:]]  # the first two lie too close together for both texts
    title = "Cost on a growing database, in that of one practice with 10,000 appointments"
    return curves.draw(title, "appointments in practices", drawn, TARGET, kept)


def _short(count: int) -> str:
    return f"{count / 1e6:.1f} million" if count >= 1e6 else f"{count:,}"


def _value(row: Mapping[str, Any]) -> str:
    value = row["value"]
    return f"{value:.0f}{row['unit']}" if value >= 20 or value == 0 else f"{value:.2f}{row['unit']}"


def _target(row: Mapping[str, Any]) -> str:
    if row["target"] is None:
        return ""
    return f"{'≤' if row['at_most'] else '≥'} {row['target']:g}{row['unit']}"


def _error(row: Mapping[str, Any]) -> str:
    """Half of the spread of the rounds, in percent of the result; one round has none."""
    if row["low"] is None or not row["value"]:
        return ""
    if row["low"] == row["high"]:
        return "±?"
    return f"±{(row['high'] - row['low']) / 2 / row['value']:.0%}"


def _spread(row: Mapping[str, Any]) -> str:
    return "" if row["low"] is None else f"{row['low']:.2f} to {row['high']:.2f}"


def _machine(machine: Mapping[str, Any]) -> str:
    return (
        f"Measured on {machine['date']}: {machine['processor']}, {machine['cores']} cores, Python {machine['python']}, "
        f"{machine['database']}; {machine['run']} run of {machine['minutes']:.0f} minutes, during which other programs "
        f"used {machine['others']:.2f} cores."
        + (" That is too much to judge by: repeat it on a quiet machine." if machine["others"] > MOST_OTHERS else "")
    )
