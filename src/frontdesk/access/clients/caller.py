"""Who is calling, as the engine and the doors know them."""

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
    directory_version: int  # what the practice's directory was at, at most a few seconds ago
