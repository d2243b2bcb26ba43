"""A fuzzer over everything opaque that a caller sends back: slot ids, cursors, access tokens, confirmation tokens.

Genuine ones are altered, cut, spliced and imitated. None is accepted, and none is an unhandled error.
"""

import itertools
import os
import random
import string
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from frontdesk.app import build_app
from tests.security.two_practices import WINDOW, Side, arguments, attacker, victim
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

URL_SAFE = string.ascii_letters + string.digits + "-_"
STRANGE = [
    "",
    " ",
    "\x00",
    "\n",
    "%",
    "%00",
    "..",
    "/",
    "é",
    "\u202e",
    "😀",
    "\ud800",
    "null",
    "None",
    "0",
    "-1",
    "{}",
    "'--",
    "=",
    "==",
]
REFUSED = {(404, "not_found"), (400, "validation"), (422, "validation")}
CHALLENGED = {(428, "confirmation_required"), (400, "validation"), (422, "validation")}


class Fuzzer:
    """Tries that differ from the genuine text by `kind` of damage; never the genuine text itself."""

    def __init__(self, seed: int, genuine: list[str], alphabet: str) -> None:
        self.random = random.Random(seed)
        self.genuine = genuine
        self.alphabet = alphabet
        self.known = set(genuine)

    def next(self) -> str:
        while True:
            text = self.random.choice(self._damages)(self, self.random.choice(self.genuine))
            if text.strip() not in self.known:
                return text

    def _characters(self, text: str) -> str:
        for _ in range(self.random.choice((1, 1, 1, 2, 5))):
            at = self.random.randrange(len(text))
            text = text[:at] + self.random.choice(self.alphabet) + text[at + 1 :]
        return text

    def _bit(self, text: str) -> str:
        at = self.random.randrange(len(text))
        return text[:at] + chr(ord(text[at]) ^ (1 << self.random.randrange(7))) + text[at + 1 :]

    def _cut(self, text: str) -> str:
        start, end = sorted(self.random.randrange(len(text) + 1) for _ in range(2))
        return text[:start] + text[end:]

    def _longer(self, text: str) -> str:
        at = self.random.randrange(len(text) + 1)
        extra = "".join(self.random.choices(self.alphabet, k=self.random.choice((1, 2, 4, 64))))
        return text[:at] + extra + text[at:]

    def _spliced(self, text: str) -> str:
        other = self.random.choice(self.genuine)
        at = self.random.randrange(min(len(text), len(other)))
        return text[:at] + other[at:]

    def _swapped(self, text: str) -> str:
        one, other = self.random.randrange(len(text)), self.random.randrange(len(text))
        letters = list(text)
        letters[one], letters[other] = letters[other], letters[one]
        return "".join(letters)

    def _random(self, text: str) -> str:
        kept = self.random.choice((0, 0, 4, len(text) // 2))
        return text[:kept] + "".join(self.random.choices(self.alphabet, k=len(text) - kept))

    def _case(self, text: str) -> str:
        return self.random.choice((text.upper(), text.lower(), text.swapcase()))

    def _strange(self, text: str) -> str:
        at = self.random.randrange(len(text) + 1)
        piece = self.random.choice(STRANGE)
        return self.random.choice((piece, text + piece, piece + text, text[:at] + piece + text[at:], piece * 50))

    _damages = (_characters, _characters, _bit, _bit, _cut, _longer, _spliced, _swapped, _random, _case, _strange)


world = world_of_a_module


@pytest.fixture(scope="module")
async def sides(world: World) -> tuple[Side, Side]:
    return await attacker(world), await victim(world)


@pytest.fixture(scope="module")
async def token(world: World) -> str:
    client = await world.client(per_minute=2_000_000_000, quota=10**12)
    authorization: str = client.headers["Authorization"].removeprefix("Bearer ")
    return authorization


Request = Callable[..., Any]


@pytest.fixture(scope="module")
def request_app(world: World) -> Request:
    """The whole application, called as a server calls it and without the weight of a client."""
    app = build_app(world.service)
    # Of many addresses: one may not send so many invalid tokens.
    addresses = (f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}" for n in itertools.count(1))

    async def send_request(
        method: str, path: str, token: str, query: str = "", body: bytes = b""
    ) -> tuple[int, dict[str, Any]]:
        answer: dict[str, Any] = {"body": b""}

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                answer["status"] = message["status"]
            else:
                answer["body"] += message["body"]

        scope = {
            "type": "http", "http_version": "1.1", "method": method, "path": path, "root_path": "",
            "query_string": query.encode(), "client": (next(addresses), 1),
            "headers": [
                (b"host", b"test"),
                (b"authorization", f"Bearer {token}".encode("utf-8", "surrogatepass")),
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
            ],
        }  # fmt: skip
        await app(scope, receive, send)
        return answer["status"], orjson.loads(answer["body"])

    return send_request


def escaped(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


async def fuzz_slot_ids(request: Request, sides: tuple[Side, Side], token: str, tries: int, seed: int) -> None:
    """The attacker's own ids, and the other practice's as they are."""
    mine, theirs = sides
    genuine = [mine.ids["slotId"], theirs.ids["slotId"]]
    assert (await request("GET", f"/api/slots/{theirs.ids['slotId']}", token))[0] == 404
    fuzzer = Fuzzer(seed, genuine, URL_SAFE)
    for _ in range(tries):
        text = fuzzer.next()
        status, document = await request("GET", f"/api/slots/{text}", token)
        assert (status, document["code"]) in REFUSED, (text, document)


async def fuzz_cursors(request: Request, sides: tuple[Side, Side], token: str, tries: int, seed: int) -> None:
    mine, theirs = sides
    fuzzer = Fuzzer(seed, [mine.cursors["search_slots"], theirs.cursors["search_slots"]], URL_SAFE)
    given = {**arguments("search_slots", mine.ids), **WINDOW, "limit": 3}
    query = "&".join(f"{name}={value}" for name, value in given.items())
    for _ in range(tries):
        text = fuzzer.next()
        status, document = await request("GET", "/api/slots", token, f"{query}&cursor={escaped(text)}")
        assert (status, document["code"]) in REFUSED - {(404, "not_found")}, (text, document)


async def fuzz_access_tokens(request: Request, token: str, other: str, tries: int, seed: int) -> None:
    fuzzer = Fuzzer(seed, [token, other], URL_SAFE + ".")
    for _ in range(tries):
        text = fuzzer.next()
        status, document = await request("GET", "/api/capabilities", text)
        assert (status, document.get("code")) == (401, "unauthorized"), (text, document)


async def fuzz_confirmation_tokens(request: Request, sides: tuple[Side, Side], tries: int, seed: int) -> None:
    mine, theirs = sides
    own = mine.agent.headers["Authorization"].removeprefix("Bearer ")
    genuine = [mine.tokens["cancel_appointment"], theirs.tokens["cancel_appointment"]]
    fuzzer = Fuzzer(seed, genuine, string.hexdigits)
    path = f"/api/appointments/{mine.ids['appointmentId']}"
    for _ in range(tries):
        text = fuzzer.next()
        body = orjson.dumps({"confirmationToken": text.encode("utf-8", "replace").decode()})
        status, document = await request("POST", f"{path}/cancel", own, body=body)
        assert (status, document["code"]) in CHALLENGED, (text, document)
    status, document = await request("GET", path, own)
    assert document["status"] == "booked"


async def test_no_fuzzed_slot_id_is_a_slot(request_app: Request, sides: tuple[Side, Side], token: str) -> None:
    await fuzz_slot_ids(request_app, sides, token, 2000, seed=1)


async def test_no_fuzzed_cursor_is_followed(request_app: Request, sides: tuple[Side, Side], token: str) -> None:
    await fuzz_cursors(request_app, sides, token, 2000, seed=2)


async def test_no_fuzzed_access_token_is_accepted(request_app: Request, world: World, token: str) -> None:
    other = (await world.client("other")).headers["Authorization"].removeprefix("Bearer ")
    await fuzz_access_tokens(request_app, token, other, 1500, seed=3)


async def test_no_fuzzed_confirmation_token_confirms(request_app: Request, sides: tuple[Side, Side]) -> None:
    await fuzz_confirmation_tokens(request_app, sides, 150, seed=4)


@pytest.mark.heavy
@pytest.mark.timeout(7200)
async def test_a_million_fuzzed_texts_are_worth_nothing(
    request_app: Request, sides: tuple[Side, Side], world: World, token: str
) -> None:
    other = (await world.client("other")).headers["Authorization"].removeprefix("Bearer ")
    for seed in range(int(os.environ.get("FORGERY_SEEDS", "10"))):  # a hundred thousand texts each
        await fuzz_slot_ids(request_app, sides, token, 40_000, seed)
        await fuzz_cursors(request_app, sides, token, 40_000, seed)
        await fuzz_access_tokens(request_app, token, other, 20_000, seed)
        await fuzz_confirmation_tokens(request_app, sides, 500, seed)
