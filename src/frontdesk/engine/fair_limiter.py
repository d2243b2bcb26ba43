"""Bounds the calls that work at the same time in this process, and gives practices and their clients fair turns.

Without it, a practice that sends many searches at once would make every other practice wait behind them. Answers from
the cache need no turn.
"""

import asyncio
from collections import deque
from typing import NamedTuple

from frontdesk.access.clients.caller import Caller
from frontdesk.domain.errors import Problem
from frontdesk.texts import N_

WAIT_SECONDS = 10.0
_CROWDED_SECONDS = 1.0
_MAX_REST = 0.1
_BUSY = N_("Too many calls are being executed at the moment; this one was not executed.")

_Turn = asyncio.Future[None]


class Turn(NamedTuple):
    began: float  # on the event loop's clock
    has_waited: bool


class FairLimiter:
    def __init__(self, at_once: int, per_practice: int, *, yields: bool = False) -> None:
        """With `yields`, a practice has one turn at a time while another is active. If more of its calls wait, it rests
        after each as long as it took: it leaves half of the processor to the others."""
        self._free = at_once
        self._per_practice = per_practice
        self._yields = yields
        self._latest = 0  # the practice that was active last
        self._latest_at = self._other_at = 0.0  # when it was active, and when any other practice was
        self._running: dict[int, int] = {}  # calls by practice
        self._resting: set[int] = set()
        self._waiting: dict[int, dict[str, deque[_Turn]]] = {}  # by practice and client; the first of each is next
        self.expired = 0  # calls that got no turn in time

    @property
    def running(self) -> int:
        return sum(self._running.values())

    @property
    def waiting(self) -> int:
        return sum(len(calls) for clients in self._waiting.values() for calls in clients.values())

    def mark_active(self, caller: Caller) -> None:
        """Counts the caller's practice as active: it takes turns, or is answered from the cache."""
        if caller.practice_id != self._latest:
            self._latest, self._other_at = caller.practice_id, self._latest_at
        self._latest_at = asyncio.get_running_loop().time()

    async def acquire(self, caller: Caller) -> Turn:
        """Wait for a turn, for at most `WAIT_SECONDS`. Every turn must be released."""
        self.mark_active(caller)
        practice_id = caller.practice_id
        if practice_id not in self._waiting and self._may_start(practice_id):
            self._count(practice_id)
            return Turn(self._latest_at, has_waited=False)
        loop = asyncio.get_running_loop()
        turn: _Turn = loop.create_future()
        self._waiting.setdefault(practice_id, {}).setdefault(caller.client_id, deque()).append(turn)
        expiry = loop.call_later(WAIT_SECONDS, _expire, turn)  # asyncio.timeout costs 10 µs more
        try:
            await turn
        except TimeoutError as error:
            self.expired += 1
            raise Problem("upstream_unavailable", _BUSY, retry_after=2) from error
        except BaseException:
            if turn.done() and not turn.cancelled() and turn.exception() is None:  # the turn came at the same moment
                self._end(practice_id)
            raise
        finally:
            expiry.cancel()
        return Turn(loop.time(), has_waited=True)

    def release(self, caller: Caller, turn: Turn) -> None:
        if caller.practice_id in self._waiting and self._is_crowded(caller.practice_id):
            self._resting.add(caller.practice_id)
            loop = asyncio.get_running_loop()
            rest = min(loop.time() - turn.began, _MAX_REST)
            loop.call_later(rest, self._end_rest, caller.practice_id)
        self._end(caller.practice_id)

    def _end(self, practice_id: int) -> None:
        self._free += 1
        self._running[practice_id] -= 1
        if not self._running[practice_id]:
            del self._running[practice_id]
        self._start_waiting()

    def _end_rest(self, practice_id: int) -> None:
        self._resting.discard(practice_id)
        self._start_waiting()

    def _start_waiting(self) -> None:
        started = True
        while started:
            started = False
            for practice_id in list(self._waiting):
                if self._may_start(practice_id) and self._start_one(practice_id):
                    self._count(practice_id)
                    started = True

    def _may_start(self, practice_id: int) -> bool:
        if not self._free or practice_id in self._resting:
            return False
        running = self._running.get(practice_id, 0)
        return running < (1 if running and self._is_crowded(practice_id) else self._per_practice)

    def _is_crowded(self, practice_id: int) -> bool:
        """Whether another practice is active."""
        active_at = self._other_at if self._latest == practice_id else self._latest_at
        return self._yields and asyncio.get_running_loop().time() < active_at + _CROWDED_SECONDS

    def _count(self, practice_id: int) -> None:
        self._free -= 1
        self._running[practice_id] = self._running.get(practice_id, 0) + 1

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


def _expire(turn: _Turn) -> None:
    if not turn.done():
        turn.set_exception(TimeoutError())
