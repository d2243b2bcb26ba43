"""Ten thousand receipts that nobody issued are refused: forged, re-encoded, or signed over a false statement."""

import base64
import hmac
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from frontdesk.features.receipts.verifying import TYPE, InvalidReceipt, verify_receipt
from tests.features.receipts.conftest import WITH_RECEIPTS, issued, listed, published
from tests.support.world import World, book

MUTATIONS = 10_000
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@dataclass
class Issued:
    """An issued receipt, another one of another practice, and what a forger has."""

    text: str
    other: str
    keys: dict[str, Any]
    signing: Ed25519PrivateKey  # the service's own: only statements that it never makes are signed with it

    @property
    def parts(self) -> list[str]:
        return self.text.split(".")

    @cached_property
    def header(self) -> dict[str, Any]:
        return dict(jwt.get_unverified_header(self.text))

    @property
    def stated(self) -> dict[str, Any]:
        """A new copy."""
        return stated_in(self.text)

    @cached_property
    def public(self) -> bytes:
        return self.signing.public_key().public_bytes_raw()


def stated_in(text: str) -> dict[str, Any]:
    payload = text.split(".")[1]
    stated: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return stated


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def signed(header: dict[str, Any] | bytes, payload: dict[str, Any] | bytes, key: Ed25519PrivateKey) -> str:
    parts = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in (header, payload)]
    text = ".".join(encoded(each) for each in parts)
    return f"{text}.{encoded(key.sign(text.encode()))}"


# Of the text


def other_character(given: Issued, rng: random.Random) -> str:
    at = rng.randrange(len(given.text))
    return given.text[:at] + rng.choice([each for each in ALPHABET if each != given.text[at]]) + given.text[at + 1 :]


def flipped_bit(given: Issued, rng: random.Random) -> str:
    content = bytearray(given.text.encode())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(7)
    return content.decode()


def cut_or_longer(given: Issued, rng: random.Random) -> str:
    cut = given.text[: rng.randrange(len(given.text))]
    return rng.choice([cut, given.text[rng.randrange(1, len(given.text)) :], given.text + rng.choice(ALPHABET)])


def moved_parts(given: Issued, rng: random.Random) -> str:
    parts = given.parts
    mixed = rng.choices([*parts, *given.other.split("."), ""], k=rng.choice([2, 3, 3, 3, 4]))
    return ".".join(mixed if mixed not in (parts, given.other.split(".")) else parts[::-1])


def re_encoded(given: Issued, rng: random.Random) -> str:
    parts, at = given.parts, rng.randrange(3)
    spare = -len(parts[at]) % 4  # the last character has bits that decode to nothing
    last = ALPHABET.index(parts[at][-1])
    ways = [
        parts[at] + "=" * max(spare, 1),
        parts[at] + rng.choice(" \n\r\t="),
        rng.choice(" \n") + parts[at],
        parts[at].replace("-", "+").replace("_", "/") + "+",
        *([parts[at][:-1] + ALPHABET[last ^ rng.randrange(1, 4 if spare == 1 else 16)]] if spare else []),
    ]
    parts[at] = rng.choice(ways)
    return ".".join(parts)


# Of the signature


def another_algorithm(given: Issued, rng: random.Random) -> str:
    algorithm = rng.choice(["none", "None", "nOnE", "HS256", "HS512", "RS256", "ES256", "Ed25519", "", None, ["EdDSA"]])
    header = {**given.header, "alg": algorithm}
    text = f"{encoded(json.dumps(header).encode())}.{given.parts[1]}"
    secret = rng.choice([given.public, encoded(given.public).encode(), json.dumps(given.keys).encode()])
    signatures = [
        "", given.parts[2], encoded(hmac.digest(secret, text.encode(), "sha256")),
        encoded(hmac.digest(secret, text.encode(), "sha512")), encoded(given.signing.sign(text.encode())),
    ]  # fmt: skip
    return f"{text}.{rng.choice(signatures)}"


def another_header(given: Issued, rng: random.Random) -> str:
    header, at = given.header, rng.randrange(6)
    kids = [key["kid"] for key in given.keys["keys"] if key["kid"] != header["kid"]]
    kid = json.dumps(header["kid"])
    changed: dict[str, Any] | bytes = [
        {**header, "typ": rng.choice(["JWT", "at+jwt", TYPE.upper(), None])},
        {**header, "kid": rng.choice([*kids, "", None, "x", header["kid"] + "0", [header["kid"]]])},
        {**header, rng.choice(["jwk", "jku", "x5u", "crit", "b64"]): rng.choice([True, "http://test", ["exp"]])},
        {key: value for key, value in header.items() if key != rng.choice(["alg", "kid", "typ"])} | {"x": 1},
        f'{{"alg":"none","alg":"EdDSA","kid":{kid},"typ":"{TYPE}"}}'.encode(),
        f'{{"kid":"x","alg":"EdDSA","kid":{kid},"typ":"{TYPE}"}}'.encode(),
    ][at]
    return signed(changed, given.stated, given.signing)


def another_key(given: Issued, rng: random.Random) -> str:
    return signed(given.header, given.stated, Ed25519PrivateKey.from_private_bytes(rng.randbytes(32)))


# Of the statement, signed as no service signs it


def contradiction(given: Issued, rng: random.Random) -> str:
    stated, other = given.stated, stated_in(given.other)
    record, head = stated["record"], stated["head"]
    match rng.randrange(9):
        case 0:
            name = rng.choice(["record", "head", "previousHash", "challenge", "readBack", "links"])
            stated[name] = other[name] if name != "links" else [*stated["links"], rng.randbytes(32).hex()]
        case 1:
            name = rng.choice([each for each in record if each not in ("practice", "sequence")])
            record[name] = rng.choice([other["record"][name], None, "x", [], 7, True])
            if record[name] == given.stated["record"][name]:
                record[name] = {}
        case 2:
            name = rng.choice(list(head))
            head[name] = rng.choice([None, "", [], rng.randbytes(32).hex(), "2026-01-01T00:00:00.000000Z", -1])
        case 3:
            if rng.random() < 0.5:
                stated["consent"]["kind"] = rng.choice(["staff", "link", "card", "elicitation", None])
            else:
                stated["askedBy"]["clientId"] = rng.choice([other["askedBy"]["clientId"], None, "fd_x"])
        case 4:
            stated["readBack"] = {**stated["readBack"], rng.choice(["start", "providerName", "x"]): "another"}
        case 5:
            asked = stated["challenge"]
            asked["text"] = rng.choice([asked["text"] + " ", asked["text"].replace("2026", "2027"), "", "{}", None])
        case 6:
            stated["links"] = rng.choice([[*stated["links"][1:], "00" * 32], [*stated["links"], ""], {}, 0, "x"])
        case 7:
            del stated[rng.choice(["record", "head", "previousHash", "challenge", "readBack", "links", "consent"])]
        case 8:
            text = json.dumps(stated)
            return signed(given.header, (text[:-1] + ', "readBack": {}}').encode(), given.signing)
    return signed(given.header, stated, given.signing)


WAYS: tuple[Callable[[Issued, random.Random], str], ...] = (
    other_character, flipped_bit, cut_or_longer, moved_parts, re_encoded, another_algorithm, another_header,
    another_key, contradiction,
)  # fmt: skip


@pytest.fixture
async def given(world: World) -> Issued:
    texts = []
    for practice in ("harbor", "other"):
        client = await world.client(practice, scopes=WITH_RECEIPTS)
        await book(client)
        texts.append(await issued(client, (await listed(client))[0]["id"]))
    return Issued(texts[0], texts[1], await published(world), world.service.ring.audit_key.private)


async def test_ten_thousand_mutated_receipts_are_refused(given: Issued) -> None:
    rng, accepted, reasons = random.Random(20261115), [], set()
    stated = verify_receipt(given.text, given.keys)
    verify_receipt(signed(given.header, stated, given.signing), given.keys)  # how statements are signed here is right
    for number in range(MUTATIONS):
        way = WAYS[number % len(WAYS)]
        mutated = way(given, rng)
        assert mutated != given.text, way
        try:
            verify_receipt(mutated, given.keys)
            accepted.append((way.__name__, mutated))
        except InvalidReceipt as refused:
            reasons.add(str(refused))
    assert accepted == []
    assert len(reasons) == 9, "each check has refused some"


async def test_a_receipt_needs_the_keys_of_its_service(world: World, given: Issued) -> None:
    for keys in ({"keys": []}, {}, {"keys": [{"kid": given.header["kid"], "kty": "oct", "k": "AAAA"}]}):
        with pytest.raises(InvalidReceipt):
            verify_receipt(given.text, keys)
    twice = {"keys": given.keys["keys"] * 2}
    with pytest.raises(InvalidReceipt):
        verify_receipt(given.text, twice)
    client: httpx.AsyncClient = world.anonymous()
    assert (await client.get("/.well-known/jwks.json")).json() == given.keys
