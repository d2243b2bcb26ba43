"""Limits calls with invalid access tokens per address, in this worker. Calls with valid ones are not concerned."""

import logging
import math
import time

from frontdesk.access.limits.addresses import network_of
from frontdesk.cache import BoundedCache
from frontdesk.domain.errors import Problem

PER_ADDRESS = 3000
_MINUTE_SECONDS = 60.0
_CACHED = 10_000
_DETAIL = "Too many calls with invalid access tokens came from this address."
_log = logging.getLogger(__name__)


class InvalidTokens:
    """`total` counts them all."""

    def __init__(self) -> None:
        self._minutes: BoundedCache[str, tuple[float, int]] = BoundedCache(_CACHED)  # begin and calls, by network
        self.total = 0

    def count(self, address: str) -> None:
        """Counts a call with an invalid token. Raises `rate_limited` if the address sent too many in this minute."""
        self.total += 1
        network, now = network_of(address), time.monotonic()
        began, calls = self._minutes.get(network) or (now, 0)
        if now - began >= _MINUTE_SECONDS:
            began, calls = now, 0
        self._minutes.put(network, (began, calls + 1))
        if calls == PER_ADDRESS:
            _log.warning("too many calls with invalid access tokens from %s", address)
        if calls >= PER_ADDRESS:
            raise Problem("rate_limited", _DETAIL, retry_after=max(1, math.ceil(began + _MINUTE_SECONDS - now)))
