"""Pages of lists: a limit, and a cursor that continues where the previous page ended."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from frontdesk.domain.errors import FieldError, invalid
from frontdesk.operations._operation import Context


class HasId(Protocol):
    @property
    def id(self) -> int: ...


R = TypeVar("R", bound=HasId)


def position(context: Context, query: Sequence[Any], cursor: str | None) -> list[Any] | None:
    """The position of the cursor, None without one. A cursor of another query or practice is refused."""
    if cursor is None:
        return None
    found = context.cursors.decode(query, cursor)
    if found is None:
        raise invalid([FieldError("cursor", "cursor", "cursor must be the nextCursor of a page of this same query")])
    return found


def page_body(
    context: Context, query: Sequence[Any], items: list[dict[str, Any]], limit: int, last: Sequence[Any] | None
) -> dict[str, Any]:
    """`last` is the position of the last item if more items follow."""
    body: dict[str, Any] = {"items": items, "limit": limit}
    if last is not None:
        body["nextCursor"] = context.cursors.encode(query, last)
    return body


def directory_page(
    context: Context,
    query: Sequence[Any],
    records: Iterable[R],
    to_body: Callable[[R], dict[str, Any]],
    limit: int,
    cursor: str | None,
) -> dict[str, Any]:
    """A page of directory records, which come in order of id."""
    after = position(context, query, cursor)
    rest = [record for record in records if after is None or record.id > after[0]]
    shown = rest[:limit]
    last = [shown[-1].id] if len(rest) > limit else None
    return page_body(context, query, [to_body(record) for record in shown], limit, last)
