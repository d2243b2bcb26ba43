"""Converts between rows and records whose fields are named like the columns."""

import sys
from array import array
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, Literal, Protocol, TypeVar

from pydantic.alias_generators import to_camel

T = TypeVar("T")

camel = cache(to_camel)  # the names in JSON


class Row(Protocol):
    """A row, or what has the names and values of one."""

    def __getitem__(self, column: str, /) -> Any: ...  # of the type that PostgreSQL gives the column


def from_row(record: Callable[..., T], row: Row, **given: object) -> T:
    """A record from the columns named like its fields; `given` has the fields that differ from their column."""
    return record(**{name: row[name] for name in field_names(record) if name not in given}, **given)


@cache
def field_names(record: Any) -> tuple[str, ...]:  # a dataclass
    return tuple(field.name for field in fields(record))


def network_integers(kind: Literal["i", "q"], numbers: bytes | None) -> "array[int]":
    """Integers of four or eight bytes in network byte order, which are much cheaper to read than arrays."""
    found = array(kind, numbers or b"")
    if sys.byteorder == "little":
        found.byteswap()
    return found


def upsert_sql(table: str, key: Sequence[str], columns: Sequence[str], **updates: str) -> str:
    """Inserts the key and columns, or updates the columns; `updates` has the expressions of those set differently."""
    updated = {column: f"excluded.{column}" for column in columns} | updates
    return (
        f"INSERT INTO {table} ({', '.join((*key, *columns))}) "  # noqa: S608 - names of ours
        f"VALUES ({', '.join(f'${number + 1}' for number in range(len(key) + len(columns)))}) "
        f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(f'{name} = {to}' for name, to in updated.items())}"
    )
