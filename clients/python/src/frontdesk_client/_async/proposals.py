"""Writes in two phases: what is proposed, and its execution, once."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

from frontdesk_client._wire import Answer, Challenge, Reader, Request
from frontdesk_client.errors import ExecutedAtOnce

T = TypeVar("T")


class AsyncProposal(Generic[T]):
    """A write, from the question to its result. `confirm()` gives the result, whatever the grant.

    Under the agent grant nothing has been changed yet: read `read_back` to the person, and call `confirm()` after a
    clear yes. Under the integration grant the write is executed already and there is nothing to read back.
    """

    def __init__(
        self, call: Callable[[Request], Awaitable[Answer]], request: Request, reader: Reader[T], answer: Answer
    ) -> None:
        self._call = call
        self._request = request
        self._reader = reader
        self._challenge: Challenge | None = None
        self._result: T | None = None
        if answer.is_challenge and (request.body or {}).get("confirmationToken") is None:
            self._challenge = answer.read(Challenge.from_json)
        else:
            self._result = self._executed(answer)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._request.method} {self._request.path} executed={self.executed}>"

    @property
    def executed(self) -> bool:
        """Whether the write is known to have been executed."""
        return self._result is not None

    @property
    def read_back(self) -> Mapping[str, Any]:
        """What would change, in words to read aloud, as the service sent it."""
        return self._asked.read_back

    @property
    def expires_at(self) -> datetime:
        """Until when it can be confirmed."""
        return self._asked.expires_at

    @property
    def confirmation_token(self) -> str:
        """For confirming elsewhere: the same method, the same arguments, and this as `confirmation_token`."""
        return self._asked.token

    async def confirm(self) -> T:
        """Executes the write and returns its result.

        May be called again whenever the outcome was not heard: the write is executed once, and every call gets the
        same result. Raises ConfirmationRequired when the proposal has expired; nothing was executed then.
        """
        if self._result is None:
            self._result = self._executed(await self._call(self._request.confirming(self._asked.token)))
        return self._result

    @property
    def _asked(self) -> Challenge:
        if self._challenge is None:
            raise ExecutedAtOnce
        return self._challenge

    def _executed(self, answer: Answer) -> T:
        if answer.is_challenge:
            raise answer.problem()
        return answer.read(self._reader)
