"""Two-phase writes."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

from frontdesk_client._wire import Answer, Challenge, Reader, Request
from frontdesk_client.errors import ExecutedAtOnce

T = TypeVar("T")


class AsyncProposal(Generic[T]):
    """A proposed write. `confirm()` returns the result under both grants.

    Under the agent grant nothing has changed yet: read `read_back` to the person, and call `confirm()` after a clear
    yes. Under the integration grant the write is already executed and there is nothing to read back.
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
        """Whether the write has been executed."""
        return self._result is not None

    @property
    def read_back(self) -> Mapping[str, Any]:
        """What would change, to be read aloud, as sent by the service."""
        return self._asked.read_back

    @property
    def expires_at(self) -> datetime:
        """The end of the time in which it can be confirmed."""
        return self._asked.expires_at

    @property
    def confirmation_token(self) -> str:
        """To confirm elsewhere, call the same method with the same arguments and this as `confirmation_token`."""
        return self._asked.token

    async def confirm(self) -> T:
        """Execute the write and return its result.

        If the response was lost, call it again: the write is executed once, and every call returns the same result.
        Raises ConfirmationRequired if the proposal has expired; nothing was executed then.
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
