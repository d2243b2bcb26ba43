"""Bounds the calls that work at the same time in this process, and gives practices and their clients fair turns.

Without it, a practice that sends many searches at once would make every other practice wait behind them. Answers from
the cache need no turn.
"""

import asyncio
from collections import deque

from frontdesk.access.clients.caller import Caller
from frontdesk.domain.errors import Problem

WAIT_SECONDS = 10.0
_CROWDED_SECONDS = 1.0
_BUSY = "Too many calls are being executed at the moment; this one was not executed."

_Turn = asyncio.Future[None]


class Turns:
    def __init__(self, at_once: int, per_practice: int, when_crowded: int | None = None) -> None:
        """A practice has `when_crowded` turns while another one is answered from the cache."""
        self._free = at_once
        self._per_practice = per_practice
        self._when_crowded = per_practice if when_crowded is None else when_crowded
        self._crowded_until = 0.0
        self.served_from_cache = 0  # the practice of the latest answer from the cache, until a turn is given back
        self._running: dict[int, int] = {}  # calls by practice
        self._waiting: dict[int, dict[str, deque[_Turn]]] = {}  # by practice and client; the first of each is next

    async def take(self, caller: Caller) -> None:
        """Wait for a turn, for at most `WAIT_SECONDS`. Every turn must be given back."""
        practice_id = caller.practice_id
        running = self._running.get(practice_id, 0)
        if self._free and running < self._most() and practice_id not in self._waiting:
            self._free -= 1
            self._running[practice_id] = running + 1
            return
        turn: _Turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(practice_id, {}).setdefault(caller.client_id, deque()).append(turn)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # the turn came at the same moment
                self.give_back(practice_id)
            if isinstance(error, TimeoutError):
                raise Problem("upstream_unavailable", _BUSY, retry_after=2) from error
            raise

    def give_back(self, practice_id: int) -> None:
        self._free += 1
        self._running[practice_id] -= 1
        if not self._running[practice_id]:
            del self._running[practice_id]
        if self.served_from_cache not in (0, practice_id):
            self._crowded_until = asyncio.get_running_loop().time() + _CROWDED_SECONDS
        self.served_from_cache = 0
        most, started = self._most(), True
        while started:
            started = False
            for next_id in list(self._waiting):
                running = self._running.get(next_id, 0)
                if self._free and running < most and self._start_one(next_id):
                    self._free -= 1
                    self._running[next_id] = running + 1
                    started = True

    def _most(self) -> int:
        """Calls of one practice at the same time."""
        crowded = asyncio.get_running_loop().time() < self._crowded_until
        return self._when_crowded if crowded else self._per_practice

    def _start_one(self, practice_id: int) -> bool:
        """Starts the practice's next call, and puts the practice and the call's client last. False if none waits."""
        clients = self._waiting.pop(practice_id)
        while clients:
            client_id, calls = next(iter(clients.items()))
            del clients[client_id]
            turn = calls.popleft()
            if calls:
                clients[client_id] = calls
            if not turn.done():  # else its caller has given up
                if clients:
                    self._waiting[practice_id] = clients
                turn.set_result(None)
                return True
        return False
