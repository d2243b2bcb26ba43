"""The actor of an audit record or a booking, with the name to show."""

from dataclasses import dataclass
from typing import Literal

ActorKind = Literal["agent", "integration", "staff", "other"]


@dataclass(frozen=True, slots=True)
class Actor:
    id: str
    name: str
    kind: ActorKind
