"""Pages of lists: a limit, and a cursor that continues where the previous page ended."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from frontdesk.domain.directory import Location, Procedure, Provider, VisitType, matches_name
from frontdesk.domain.errors import FieldError, invalid
from frontdesk.operations._fields import FOREIGN_CURSOR
from frontdesk.operations._operation import Context
from frontdesk.operations._records import DirectoryRecord, record_body
from frontdesk.texts import Text

DirectoryEntry = Location | Provider | VisitType | Procedure


class DirectoryFilter(Protocol):
    """The fields that requests for a page of the directory share."""

    @property
    def name(self) -> str | None: ...
    @property
    def limit(self) -> int: ...
    @property
    def cursor(self) -> str | None: ...


def position(context: Context, query: Sequence[object], cursor: str | None) -> list[Any] | None:
    """The position of the cursor, None without one. A cursor of another query or practice is refused."""
    if cursor is None:
        return None
    found = context.cursors.decode(query, cursor)
    if found is None:
        raise invalid([FieldError("cursor", "cursor", Text(FOREIGN_CURSOR))])
    return found


def page_body(
    context: Context, query: Sequence[object], items: object, limit: int, last: Sequence[object] | None
) -> dict[str, object]:
    """`items` are anything that becomes a JSON array; `last` is the position of the last item if more items follow."""
    body: dict[str, object] = {"items": items, "limit": limit}
    if last is not None:
        body["nextCursor"] = context.cursors.encode(query, last)
    return body


def directory_page(
    context: Context,
    query: Sequence[object],
    records: Iterable[DirectoryEntry],
    model: type[DirectoryRecord],
    given: DirectoryFilter,
) -> dict[str, object]:
    """A page of the active records whose name matches. They come in order of id."""
    query = [*query, given.name]
    after = position(context, query, given.cursor)
    rest = [
        record
        for record in records
        if record.active
        and matches_name(given.name or "", record.name, record.aliases)
        and (after is None or record.id > after[0])
    ]
    shown = rest[: given.limit]
    last = [shown[-1].id] if len(rest) > given.limit else None
    return page_body(context, query, [record_body(model, record) for record in shown], given.limit, last)
