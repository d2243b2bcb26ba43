"""Looks up the addresses of host names, each in a thread of its own.

In a shared thread pool, names of one practice whose name server hangs would block the lookups of all others.
"""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial


class HostLookups:
    """A name that hangs takes one thread, however many ask for it."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Future[list[str]]] = {}

    async def addresses(self, host: str) -> list[str]:
        """The host's addresses, each once. OSError or UnicodeError if the name has none."""
        if (lookup := self._running.get(host)) is None:
            thread = ThreadPoolExecutor(1, "host-lookup")
            lookup = asyncio.get_running_loop().run_in_executor(thread, partial(_addresses, host))
            thread.shutdown(wait=False)
            self._running[host] = lookup
            lookup.add_done_callback(partial(self._end, host))
        await asyncio.wait([lookup])  # a caller that gives up ends neither the thread nor the wait of others
        return lookup.result()

    def _end(self, host: str, lookup: asyncio.Future[list[str]]) -> None:
        del self._running[host]
        lookup.exception()  # else asyncio would log it where all callers have given up


def _addresses(host: str) -> list[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
