"""Retry rules and deadlines, following the service's error catalogue:

- `rate_limited` and `upstream_unavailable`: retry after Retry-After;
- `internal`: retry once, after a delay;
- no response, or a proxy's error: retry with back-off;
- everything else: no retry.
"""

from random import uniform
from time import monotonic

from frontdesk_client.errors import AnswerLost, FrontdeskError
from frontdesk_client.problems import Internal, RateLimited, UpstreamUnavailable

_PASSING = (None, 429, 502, 503, 504)  # no response, or a proxy's temporary error
_FIRST_PAUSE, _MAX_PAUSE = 0.2, 5.0
_INTERNAL_PAUSE = 1.0


class Deadline:
    """The deadline of a call."""

    def __init__(self, seconds: float) -> None:
        self._at = monotonic() + seconds

    def left(self) -> float:
        """The remaining seconds, never zero."""
        seconds = self._at - monotonic()
        if seconds <= 0:
            raise AnswerLost("No answer came within the deadline.")
        return seconds

    def allows(self, pause: float) -> bool:
        return monotonic() + pause < self._at


class Retries:
    """The attempts of one call."""

    def __init__(self) -> None:
        self._lost = 0
        self._internal = 0

    def pause(self, error: FrontdeskError) -> float | None:
        """Seconds to wait before a retry; None if the call must not be retried.

        At least Retry-After, plus jitter.
        """
        if isinstance(error, RateLimited | UpstreamUnavailable):
            return (error.retry_after or 1.0) + uniform(0, 1)  # noqa: S311 - spreads load, no secret
        if isinstance(error, Internal):
            self._internal += 1
            return _INTERNAL_PAUSE * uniform(0.5, 1.5) if self._internal == 1 else None  # noqa: S311
        if isinstance(error, AnswerLost) and error.status in _PASSING:
            self._lost += 1
            slower = min(_FIRST_PAUSE * 2.0 ** (self._lost - 1), _MAX_PAUSE)
            return max(error.retry_after or 0.0, slower * uniform(0.5, 1.5))  # noqa: S311
        return None
