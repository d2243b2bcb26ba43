"""Limits how many connections one address may have open to a worker. Trusted proxies have no limit."""

import logging
import time
from collections.abc import Callable

from frontdesk.access.limits.addresses import network_of
from frontdesk.cache import BoundedCache

_LOG_SECONDS = 60.0
_CACHED = 1000
_log = logging.getLogger(__name__)


class ConnectionLimit:
    """`refused` counts refused connections."""

    def __init__(self, limit: int, trusts: Callable[[str], bool]) -> None:
        self.limit = limit
        self.refused = 0
        self._trusts = trusts
        self._open: dict[str, int] = {}  # connections by network
        self._logged: BoundedCache[str, float] = BoundedCache(_CACHED)  # when, by network

    def opened(self, address: str) -> bool:
        """False if the connection must be refused; otherwise `closed` has to follow."""
        network = network_of(address)
        count = self._open.get(network, 0)
        if count >= self.limit and not self._trusts(address):
            self._refuse(address, network)
            return False
        self._open[network] = count + 1
        return True

    def closed(self, address: str) -> None:
        network = network_of(address)
        self._open[network] -= 1
        if not self._open[network]:
            del self._open[network]

    def _refuse(self, address: str, network: str) -> None:
        self.refused += 1
        now = time.monotonic()
        if now - (self._logged.get(network) or -_LOG_SECONDS) >= _LOG_SECONDS:
            self._logged.put(network, now)
            _log.warning("connections from %s are refused: it has %d open", address, self.limit)
