"""Style sheet of the calendar grid: one class per position, because the CSP allows no inline styles."""

from frontdesk.console.calendar.axis import HOUR, STEP
from frontdesk.console.calendar.layout import MAX_LANES

MAX_COLUMNS = 100
_MAX_ROWS = 26 * HOUR // STEP  # no day is longer
_ROWS_TOGETHER = HOUR // STEP // 2
MAX_SHORTEST_ROWS = HOUR // STEP  # rows of the shortest appointment, from which on the height of a row stays the same


def grid_css() -> bytes:
    rows, lanes, columns = (range(1, limit + 1) for limit in (_MAX_ROWS, MAX_LANES, MAX_COLUMNS))
    rules = [f".at-{n}{{grid-row-start:{n}}}" for n in rows]
    rules += [f".for-{n}{{grid-row-end:span {n}}}" for n in rows]
    rules += [f".rows-{n}{{--rows:{n}}}" for n in rows if n % _ROWS_TOGETHER == 0]
    rules += [f".shortest-{n}{{--shortest:{n}}}" for n in range(1, MAX_SHORTEST_ROWS + 1)]
    rules += [f".lanes-{n}{{--lanes:{n}}}\n.lane-{n}{{grid-column-start:{n}}}" for n in lanes]
    rules += [f".wide-{n}{{grid-column-end:span {n}}}" for n in lanes if n > 1]
    rules += [f".columns-{n}{{--columns:{n}}}" for n in columns]
    return "\n".join([*rules, ""]).encode()
