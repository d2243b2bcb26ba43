"""Small readers for the generated records."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def optional(read: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else read(value)
