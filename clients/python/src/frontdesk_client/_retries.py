"""When a call is sent again, and how long it may take in all. The rules are those of the service's catalogue of errors:

- `rate_limited` and `upstream_unavailable` were not executed: again after Retry-After;
- `internal`: once more, after a pause;
- no answer, or only that of something in between: again, ever more slowly;
- everything else would only be answered the same: never.

`unauthorized` is not here: it takes a fresh token, not time.
"""

from random import uniform
from time import monotonic

from frontdesk_client.errors import AnswerLost, FrontdeskError
from frontdesk_client.problems import Internal, RateLimited, UpstreamUnavailable

_PASSING = (None, 429, 502, 503, 504)  # no answer at all, or a proxy's that says "not now"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_INTERNAL_PAUSE = 1.0


class Deadline:
    """The end of a call, whatever it takes to answer it."""

    def __init__(self, seconds: float) -> None:
        self._at = monotonic() + seconds

    def left(self) -> float:
        """The seconds that are left, at least a little."""
        seconds = self._at - monotonic()
        if seconds <= 0:
            raise AnswerLost("No answer came within the deadline.")
        return seconds

    def allows(self, pause: float) -> bool:
        return monotonic() + pause < self._at


class Retries:
    """What one call has been through so far."""

    def __init__(self) -> None:
        self._lost = 0
        self._internal = 0

    def pause(self, error: FrontdeskError) -> float | None:
        """Seconds to wait before the call is sent again; None when it must not be.

        Never less than the service asked for; the rest is chance, so that many callers do not come back at once.
        """
        if isinstance(error, RateLimited | UpstreamUnavailable):
            return (error.retry_after or 1.0) + uniform(0, 1)  # noqa: S311 - spreads load, no secret
        if isinstance(error, Internal):
            self._internal += 1
            return _INTERNAL_PAUSE * uniform(0.5, 1.5) if self._internal == 1 else None  # noqa: S311
        if isinstance(error, AnswerLost) and error.status in _PASSING:
            self._lost += 1
            slower = min(_FIRST_PAUSE * 2.0 ** (self._lost - 1), _LONGEST_PAUSE)
            return max(error.retry_after or 0.0, slower * uniform(0.5, 1.5))  # noqa: S311
        return None
