"""What a run leaves behind: all rows on the terminal and as JSON, and in docs/performance.md two tables and the curves.

The documents are made from the JSON and from nothing else: `bench/run.py --report` makes them again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import curves
from growth import Point
from measuring import Row, median
from targets import AT_LEAST, AT_MOST, is_met, target_of

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "bench/results"
DOCUMENT = ROOT / "docs/performance.md"
CURVES = ROOT / "docs/performance-growth.svg"
MAX_OTHER_LOAD = 0.15
BEGIN, END = "<!-- figures: written by make bench -->", "<!-- end of figures -->"

# What the document shows of the rows, by their keys: calls with their rates and CPU times, and single results.
CALLS = {
    "directory, directory from memory": "list_providers",
    "slot, slot from memory": "get_slot",
    "search, search from memory": "search_slots, repeated",
    "mcp, search": "the same over MCP, against REST",
    "search never asked, search from memory": "search_slots, new",
    "slots never shown, search from memory": "search_slots, new, with slots never shown before",
    "search while booking, search from memory": "search_slots, a booking after every 20",
    "booking": "booking in two phases, against pgbench",
    "one call": "booking in one call, against pgbench",
}
RESULTS_SHOWN = {
    "search never asked, service": "new search, CPU of the service, scaled",
    "slots never shown, service": "the same with slots never shown before",
    "booking, service": "two-phase booking, CPU of the service, scaled",
    "booking, database": "the same, CPU of PostgreSQL",
    "search p99": "p99 of a repeated search, against that of the floor",
    "group-with-room, warm": "find_first_available over 50 providers, repeated, against a repeated search",
    "group-with-room, after one booking": "the same after one booking",
    "group-booked-out, after all calendars changed": "the same after all calendars changed, booked out for 80 days",
    "mixed day": "CPU of a whole conversation, 16 agents at a time, against the sum of its floors",
    "noisy neighbour": "p99 of a repeated search beside a busy practice, against alone",
    "two workers": "searches of two workers on two cores, against one worker on one",
    "refusals": "64 clients for the same 10 slots: refusals a second, against bookings without contention",
    "lost": "bookings lost or doubled there",
    "calendar, a day of 600 appointments": "calendar page with 600 appointments, compressed",
    "calendar, paint": "first paint of that page, against one with 60",
    "webhook backlog": "webhook deliveries with 100,000 pending events",
    "memory": "memory of a worker after ten minutes of load",
    "start-up": "start with an existing data directory",
    "large practice, search": "new search in a practice of 200 providers, against one of ten",
    "growth of searches": "cost of a new search with 10,000 practices, against one",
    "growth of warm searches": "cost of a repeated search with 10,000 practices, against one",
    "growth of bookings": "cost of a booking with 10,000 practices, against one",
    "idle": "cores used with 10,000 practices and no calls",
}


def document(machine: Mapping[str, Any], rows: Sequence[Row], points: Sequence[Point]) -> dict[str, Any]:
    return {
        "machine": dict(machine),
        "rows": [asdict(row) for row in rows],
        "growth": [asdict(point) for point in points],
    }


def table(found: Mapping[str, Any]) -> str:
    """For a terminal: one line a case, its figures below it."""
    lines = []
    for row in found["rows"]:
        target = target_of(row["key"])
        verdict = {True: "met", False: "NOT MET", None: ""}[_met(row)]
        if target is not None and row["low"] is not None and row["low"] <= target <= row["high"]:
            verdict += ", within the error"
        lines.append(f"{row['title']:<88} {_value(row):>9} {_error(row):>6} {_target(row):>10} {verdict}")
        if row["figures"]:
            lines.append(f"    {row['figures']}")
    if found["machine"]["run"] == "full":
        without = sorted({*AT_LEAST, *AT_MOST} - {row["key"] for row in found["rows"]})
        lines += ["", f"Targets that were not measured: {', '.join(without) or 'none'}."]
    return "\n".join([*lines, "", f"{_simulated_refusal(found)} {_machine(found['machine'])}"])


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
    rows = {row["key"]: row for row in found["rows"]}
    lines = ["| call | calls a second | CPU: service | CPU: PostgreSQL | ratio to its floor | target | met |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for key, name in CALLS.items():
        if row := rows.get(key):
            details = row["details"]
            rate, costs = median(details["rates"]), details["cpu"]
            spent = f"{costs['service']:,.0f} µs | {costs['database']:,.0f} µs"
            lines.append(f"| {name} | {rate:,.0f} | {spent} | {_value(row)} | {_target(row)} | {_answer(row)} |")
    lines += ["", "| measured | result | target | met |", "|---|---|---|---|"]
    for key, name in RESULTS_SHOWN.items():
        if row := rows.get(key):
            lines.append(f"| {name} | {_value(row)} | {_target(row)} | {_answer(row)} |")
    if found["growth"]:
        lines += ["", f"![Cost of a search and of a booking on a growing database]({CURVES.name})"]
    return "\n".join([*lines, "", f"{_simulated_refusal(found)} {_machine(found['machine'])}"])


def _met(row: Mapping[str, Any]) -> bool | None:
    return is_met(row["key"], row["value"])


def _answer(row: Mapping[str, Any]) -> str:
    return {True: "yes", False: "**no**", None: ""}[_met(row)]


def _simulated_refusal(found: Mapping[str, Any]) -> str:
    judged = [met for row in found["rows"] if (met := _met(row)) is not None]
    return f"{sum(judged)} of {len(judged)} targets met."


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
    return curves.draw(title, "appointments in practices", drawn, AT_MOST["growth of searches"], kept)


def _short(count: int) -> str:
    return f"{count / 1e6:.1f} million" if count >= 1e6 else f"{count:,}"


def _value(row: Mapping[str, Any]) -> str:
    value = row["value"]
    return f"{value:.0f}{row['unit']}" if value >= 20 or value == 0 else f"{value:.2f}{row['unit']}"


def _target(row: Mapping[str, Any]) -> str:
    target = target_of(row["key"])
    return "" if target is None else f"{'≥' if row['key'] in AT_LEAST else '≤'} {target:,g}{row['unit']}"


def _error(row: Mapping[str, Any]) -> str:
    """Half of the spread of the rounds, in percent of the result; one round has none."""
    if row["low"] is None or not row["value"]:
        return ""
    if row["low"] == row["high"]:
        return "±?"
    return f"±{(row['high'] - row['low']) / 2 / row['value']:.0%}"


def _machine(machine: Mapping[str, Any]) -> str:
    return (
        f"Measured on {machine['date']}: {machine['processor']}, {machine['cores']} cores, Python {machine['python']}, "
        f"{machine['database']}; {machine['run']} run of {machine['minutes']:.0f} minutes, during which other programs "
        f"used {machine['others']:.2f} cores."
        + (" That is too much to judge by: repeat it on a quiet machine." if machine["others"] > MAX_OTHER_LOAD else "")
    )
