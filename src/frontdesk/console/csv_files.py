"""Tables as CSV files that spreadsheets open safely."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

from starlette.responses import PlainTextResponse

# At the start of a cell, also where ; or tabs separate cells: quotes are dropped there. Spreadsheets read wide
# characters as the narrow ones.
_FORMULA = re.compile(r"((?:^|[;\t\r\n])[\s\"]*)(?=[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])")


def csv_file(name: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> PlainTextResponse:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(map(_cell, headings))
    writer.writerows(map(_cell, row) for row in rows)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return PlainTextResponse(text.getvalue(), headers=headers, media_type="text/csv; charset=utf-8")


def _cell(value: object) -> object:
    """A text that a spreadsheet would take for a formula is marked as text."""
    return _FORMULA.sub(r"\1'", value) if isinstance(value, str) else value
