"""The caller of an operation."""

from dataclasses import dataclass
from typing import Literal

Grant = Literal["agent", "integration"]


@dataclass(frozen=True, slots=True)
class Caller:
    client_id: str
    practice_id: int
    practice_slug: str
    scopes: frozenset[str]
    grant: Grant
    directory_version: int  # version of the directory, at most a few seconds old
