"""What is found out about a scheduling system, for operators."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

State = Literal["works", "not supported", "misconfigured", "unreachable"]
ConnectionState = Literal["working", "failing", "resting"]


@dataclass(frozen=True, slots=True)
class Finding:
    subject: str
    state: State
    detail: str

    @property
    def is_error(self) -> bool:
        return self.state in ("misconfigured", "unreachable")


@dataclass(frozen=True, slots=True)
class Condition:
    """The connection of this process to a practice's server."""

    state: ConnectionState
    retry_in: int  # seconds
    answered_at: datetime | None  # None: not since this process began
    software: str | None
