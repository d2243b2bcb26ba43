"""Records what concurrent clients asked for and what they were answered, over every door."""

import json
import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import httpx

from frontdesk.features.holds.operations import GET_HOLD, HOLD_SLOT, RELEASE_HOLD
from frontdesk.operations import OPERATIONS, Operation
from tests.doors.mcp_speech import HANDSHAKE, headers, request
from tests.proof.fhir_door import over_fhir, told_over_fhir
from tests.proof.gate import Gate

BY_NAME: Mapping[str, Operation] = {operation.name: operation for operation in OPERATIONS}
OF_HOLDS = (HOLD_SLOT, GET_HOLD, RELEASE_HOLD)
WRITES = frozenset(operation.name for operation in (*OPERATIONS, *OF_HOLDS) if operation.kind == "write")
AUDITED_READS = frozenset(operation.name for operation in OPERATIONS if operation.reads_phi)
NEVER = 1 << 62
CLOCK_TOLERANCE = 2.0  # seconds between the clock of the service and that of the history
_MINUTE = re.compile(r'"minute";r=\d+;t=(\d+)')


@dataclass(slots=True, eq=False)
class Op:
    """One call. Times are nanoseconds of one monotonic clock; `status` 0 is a call whose answer was lost."""

    practice: str
    client: str
    door: str
    name: str
    given: Mapping[str, Any]
    invoked: int
    answered: int = NEVER
    status: int = 0
    body: Mapping[str, Any] = field(default_factory=dict)
    token: str | None = None
    key: str | None = None
    request_id: str = ""
    minute_ends: float | None = None  # of the client's rate limit, in seconds of the same clock

    @property
    def code(self) -> str | None:
        """The code of a refusal, None for a success and for a lost answer."""
        return self.body.get("code") if self.status >= 400 else None

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_unknown(self) -> bool:
        """Whether it may have executed, for all its caller knows."""
        return self.name in WRITES and (self.status in (0, 500) or self.code == "confirmation_incomplete")

    def __str__(self) -> str:
        answer = "lost" if self.status == 0 else f"{self.status} {self.code or json.dumps(self.body)[:300]}"
        return f"{self.client[:9]} {self.door} {self.name} {json.dumps(self.given)} -> {answer}"


class Offset(NamedTuple):
    """By how many seconds the clocks of the service's processes are wrong from this moment on."""

    since: int
    least: float
    most: float


@dataclass
class History:
    ops: list[Op] = field(default_factory=list)
    persons: dict[tuple[str, str], "Person"] = field(default_factory=dict)  # on file before the history begins
    directory: dict[tuple[str, str, str], Mapping[str, Any]] = field(
        default_factory=dict
    )  # what directory reads answer
    caps: dict[str, int] = field(default_factory=dict)  # by client
    write_limits: dict[str, int] = field(default_factory=dict)  # of each kind in an hour, by client
    offsets: list[Offset] = field(default_factory=lambda: [Offset(0, 0.0, 0.0)])
    faults: list[tuple[int, str]] = field(default_factory=list)
    upstream: frozenset[str] = frozenset()  # practices whose calendar is in another system
    wall_clock: float = field(default_factory=lambda: time.time() - time.monotonic())

    def latest_service_time(self, op: Op) -> float:
        """The latest time that the service's clock can have shown while it worked on a call."""
        before = [offset.most for offset in self.offsets if offset.since <= op.invoked][-1]
        during = (offset.most for offset in self.offsets if op.invoked < offset.since <= op.answered)
        return op.answered / 1e9 + self.wall_clock + max(before, *during, before)

    def earliest_service_time(self, op: Op) -> float:
        """The earliest time that the service's clock can have shown while it worked on a call."""
        before = [offset.least for offset in self.offsets if offset.since <= op.invoked][-1]
        during = (offset.least for offset in self.offsets if op.invoked < offset.since <= op.answered)
        return op.invoked / 1e9 + self.wall_clock + min(before, *during, before)

    def moments_of(self, service_time: float) -> tuple[int, int]:
        """The first moment in which a process of the service may have had that time, and the last in which one may
        have had an earlier time."""
        first, last = NEVER, 0
        for number, offset in enumerate(self.offsets):
            until = self.offsets[number + 1].since if number + 1 < len(self.offsets) else NEVER
            reached, passed = (
                int((service_time + tolerance - self.wall_clock - wrong) * 1e9)
                for tolerance, wrong in ((-CLOCK_TOLERANCE, offset.most), (CLOCK_TOLERANCE, offset.least))
            )
            if reached < until:
                first = min(first, max(reached, offset.since))
            if passed > offset.since:
                last = max(last, min(passed, until))
        return first, last


@dataclass(frozen=True, slots=True)
class Person:
    """A patient as a caller describes one."""

    first: str
    last: str
    dob: str
    phone: str
    email: str | None = None


class Caller:
    """A client of the service with a connection to every node."""

    def __init__(self, history: History, practice: str, grant: str, credentials: tuple[str, str], nodes: list[Any]):
        self.history = history
        self.practice = practice
        self.is_agent = grant == "agent"
        self.client_id, self._secret = credentials
        self._nodes = nodes  # a list that the nemeses may change
        self._bearer = ""
        self.gate = Gate()

    async def sign_in(self) -> bool:
        """Whether a node has given a token; without one the next call is refused."""
        form = {"grant_type": "client_credentials", "client_id": self.client_id, "client_secret": self._secret}
        try:
            answer = await random.choice(self._nodes).post("/oauth/token", data=form)
        except httpx.HTTPError:
            return False
        if answer.status_code == 200:
            self._bearer = f"Bearer {answer.json()['access_token']}"
        return bool(answer.status_code == 200)

    async def call(
        self, name: str, given: Mapping[str, Any], *, token: str | None = None, key: str | None = None
    ) -> Op:
        """Makes one call at a node and door chosen at random, and records it."""
        async with self.gate.passing():
            return await self._call(name, given, token, key)

    async def _call(self, name: str, given: Mapping[str, Any], token: str | None, key: str | None) -> Op:
        door = random.choice(_doors(name, given))
        op = Op(self.practice, self.client_id, door, name, given, time.monotonic_ns(), token=token, key=key)
        op.request_id = f"{random.getrandbits(128):032x}"
        self.history.ops.append(op)
        sent = {
            "Authorization": self._bearer,
            "traceparent": f"00-{op.request_id}-{random.getrandbits(64) | 1:016x}-01",
        }
        if key is not None:
            sent["Idempotency-Key"] = key
        fields = dict(given) if token is None else {**given, "confirmationToken": token}
        node = random.choice(self._nodes)
        try:
            if door == "fhir":
                answer = await over_fhir(node, name, given, token, sent)
                status, body = told_over_fhir(name, given, answer)
            elif door == "mcp":
                answer = await _over_mcp(node, name, fields, sent)
                status, body = _told_over_mcp(BY_NAME[name], answer)
            else:
                answer = await _over_rest(node, BY_NAME[name], fields, sent)
                status, body = answer.status_code, answer.json()
        except (httpx.HTTPError, ValueError):  # cut off: the answer is lost
            return op
        op.answered, op.status, op.body = time.monotonic_ns(), status, body
        if self.client_id in self.history.caps and (minute := _MINUTE.search(answer.headers.get("RateLimit", ""))):
            op.minute_ends = op.answered / 1e9 + int(minute[1])
        if op.code == "unauthorized":
            await self.sign_in()
        return op


def _doors(name: str, given: Mapping[str, Any]) -> Sequence[str]:
    if name not in BY_NAME or "holdId" in given:
        return ("fhir",)
    return ("rest", "mcp", "fhir") if name == "get_slot" else ("rest", "mcp")


async def _over_rest(node: Any, operation: Operation, fields: dict[str, Any], sent: dict[str, str]) -> Any:
    path = re.sub(r"\{(\w+)\}", lambda found: str(fields.pop(found[1])), operation.path)
    if operation.method == "GET":
        return await node.get(f"/api{path}", params=fields, headers=sent)
    return await node.request(operation.method, f"/api{path}", json=fields, headers=sent)


async def _over_mcp(node: Any, name: str, fields: dict[str, Any], sent: dict[str, str]) -> Any:
    message = request("tools/call", {"name": name, "arguments": fields})
    return await node.post("/mcp", json=message, headers={**headers(message, HANDSHAKE[-1]), **sent})


def _told_over_mcp(operation: Operation, answer: Any) -> tuple[int, Mapping[str, Any]]:
    """The status and body that REST would have answered."""
    if answer.status_code != 200:
        return answer.status_code, answer.json()
    result = json.loads(answer.content.split(b"data: ", 1)[1])["result"]
    body = result["structuredContent"]
    if result.get("isError"):
        return body["status"], body
    return (428 if body.get("code") == "confirmation_required" else operation.success), body
