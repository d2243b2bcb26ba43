"""An access token and its expiry."""

from dataclasses import dataclass, field
from time import monotonic
from typing import Any

_MAX_MARGIN = 30.0


@dataclass(frozen=True, slots=True)
class Token:
    text: str = field(repr=False)
    stale_at: float

    @classmethod
    def from_json(cls, data: Any) -> "Token":
        """The expiry is a little early, so that a token does not expire in transit."""
        lifetime = float(data["expires_in"])
        return cls(str(data["access_token"]), monotonic() + lifetime - min(_MAX_MARGIN, lifetime / 10))

    def is_fresh(self) -> bool:
        return monotonic() < self.stale_at
