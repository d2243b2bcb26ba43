"""Asks the user of an MCP host to agree to a write.

Revision 2026-07-28 answers the call with the question, and the host sends the call again with the answer. Earlier
revisions put the question on the stream of the call, and the answer comes as a request of its own, to any node.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

from starlette.types import Receive, Send

from frontdesk.access.clients.caller import Caller
from frontdesk.domain.consent import CONSENTS, Consent, meets
from frontdesk.domain.errors import Problem
from frontdesk.doors.mcp.cards import takes_cards
from frontdesk.doors.mcp.messages import CAPABILITIES, INVALID_PARAMS, Message
from frontdesk.doors.mcp.read_back import question
from frontdesk.engine.consent import Challenge
from frontdesk.engine.execute import Engine
from frontdesk.operations import Operation
from frontdesk.web.http_request import decoded

CONFIRM: Final = "confirm"
SESSION: Final = b"mcp-session-id"
MAX_QUESTIONS = 8  # that a client has open at one worker
POLL_INTERVAL_SECONDS = 0.25
_HEARTBEAT_SECONDS = 15.0
_ALIVE = b": waiting for an answer\n\n"
_SCHEMA = {
    "type": "object",
    "properties": {CONFIRM: {"type": "boolean", "title": "Yes, do this"}},
    "required": [CONFIRM],
}


def consent_methods_of(capabilities: object) -> frozenset[Consent]:
    """The ways of asking a person that a client declares. An empty `elicitation` means forms."""
    elicitation = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    forms = isinstance(elicitation, dict) and (not elicitation or "form" in elicitation)
    declared: dict[Consent, bool] = {"elicitation": forms, "card": takes_cards(capabilities)}
    return frozenset(way for way, is_declared in declared.items() if is_declared)


def needs_consent_methods(caller: Caller) -> bool:
    """Whether calls of this caller depend on what its host can do; others get the token of the contract."""
    demands_more = any(not meets("token", demand) for demand in caller.demands.values())
    return caller.staff_id is not None or (caller.trusted_to_ask and demands_more)


def agreement(answer: object) -> bool | None:
    """Whether the user agreed; None if that is no answer."""
    if not isinstance(answer, dict):
        return None
    action = answer.get("action")
    if action in ("decline", "cancel"):
        return False
    content = answer.get("content") if action == "accept" else None
    confirmed = content.get(CONFIRM) if isinstance(content, dict) else None
    return confirmed if isinstance(confirmed, bool) else None


def declined() -> Problem:
    detail = "The person did not agree. Nothing was executed. Do not ask again unless the person wants it."
    return Problem("consent_required", detail)


def question_of(operation: Operation, challenge: Challenge) -> dict[str, object]:
    """The parameters of `elicitation/create`."""
    message = question(operation, challenge.extra["readBack"])
    return {"message": message, "requestedSchema": _SCHEMA}


class Elicitation:
    """Open questions. What the host sends back is authenticated and bound to the client and its practice."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open: Counter[str] = Counter()  # questions by client

    def signed(self, purpose: str, caller: Caller, value: str) -> str:
        return self._engine.cursors(caller.practice_id).encode([purpose, caller.client_id], [value])

    def verified(self, purpose: str, caller: Caller, text: object) -> str | None:
        """The content of a signed text. None if it was altered, or made for another client or purpose."""
        if not isinstance(text, str):
            return None
        found = self._engine.cursors(caller.practice_id).decode([purpose, caller.client_id], text)
        return None if found is None else str(found[0])

    def session(self, caller: Caller, capabilities: object) -> bytes:
        """A session id that carries what the host of a handshake revision can do: no state is kept for it."""
        return self.signed("session", caller, ",".join(sorted(consent_methods_of(capabilities)))).encode()

    def ways(self, message: Message, caller: Caller, session: bytes | None) -> frozenset[Consent]:
        """The ways in which the host can ask, as a modern request or `initialize` has declared them."""
        if message.modern:
            return consent_methods_of(message.params["_meta"][CAPABILITIES])
        declared = (self.verified("session", caller, decoded(session)) or "").split(",")
        return frozenset(way for way in CONSENTS if way in declared)

    async def agreed_to(self, message: Message, caller: Caller, request_id: str) -> str | None:
        """The token that the host's user has agreed to; None without an answer. Raises Problem if they declined."""
        state = message.params.get("requestState") if message.modern else None
        if state is None:
            return None
        token = self.verified("state", caller, state)
        if token is None:
            raise message.rejection(INVALID_PARAMS, "params.requestState was altered, or belongs to another client.")
        answers = message.params.get("inputResponses")
        agreed = agreement(answers.get(CONFIRM)) if isinstance(answers, dict) else None
        if agreed is False:
            await self.answer(caller, token, agreed=False, request_id=request_id)
            raise declined()
        return token if agreed else None

    async def answer(self, caller: Caller, token: str, *, agreed: bool, request_id: str) -> None:
        now = self._engine.clock()
        intents = self._engine.writes.intents
        await intents.answer(caller, token, agreed=agreed, now=now, request_id=request_id)
        self._engine.audit.seal_soon(caller.practice_id)

    @contextlib.contextmanager
    def asking(self, caller: Caller) -> Iterator[None]:
        if self._open[caller.client_id] >= MAX_QUESTIONS:
            raise Problem("rate_limited", "Too many questions to users of this client are still open.", retry_after=30)
        self._open[caller.client_id] += 1
        try:
            yield
        finally:
            self._open[caller.client_id] -= 1
            if not self._open[caller.client_id]:
                del self._open[caller.client_id]

    async def agreed(self, caller: Caller, token: str, receive: Receive, send: Send, request_id: str) -> bool:
        """Waits for the answer while the stream is open. Without a yes in time, the challenge is withdrawn."""
        disconnected = asyncio.create_task(_wait_for_disconnect(receive))
        answered = False
        try:
            async with asyncio.timeout(self._engine.writes.token_lifetime.total_seconds()):
                answered = await self._answered(caller, token, disconnected, send)
                return answered
        except TimeoutError:
            return False
        finally:
            disconnected.cancel()
            if not answered:
                with contextlib.suppress(Problem):
                    await self.answer(caller, token, agreed=False, request_id=request_id)

    async def _answered(self, caller: Caller, token: str, disconnected: "asyncio.Task[None]", send: Send) -> bool:
        spoke = time.monotonic()
        while True:
            agreed = await self._engine.writes.intents.is_agreed(caller, token)
            if agreed is not False:
                return agreed is True
            await asyncio.wait([disconnected], timeout=POLL_INTERVAL_SECONDS)
            if disconnected.done():
                return False
            if time.monotonic() - spoke >= _HEARTBEAT_SECONDS:
                spoke = time.monotonic()
                await send({"type": "http.response.body", "body": _ALIVE, "more_body": True})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
