"""Alters inputs: bytes, words of the format, and the values of JSON documents."""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

MAX_INPUT_BYTES = 4096
_WORDS = (
    b"", b"\0", b"\xff", b"\xed\xa0\x80", b"%00", b"%ff", b"%", b"\r\n", b"\r\n\r\n", b"{", b"}", b"[", b"]", b'"',
    b":", b",", b"=", b"&", b";", b".", b"-1", b"0", b"9" * 20, b"1e999", b"NaN", b"null", b"true", b"0x10",
    b"9999-12-31", b"0000-00-00", b"2026-02-30", b"\xc2\xa0", b"\xe2\x80\xae", b"\xf0\x9f\x92\xa9", b"../", b"//", b" ",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**31, 2**63, 2**64, -(2**63) - 1, 1.5, 1e308, "", " ", "\0", "x" * 600, "\u202e",
    "💩", "0001-01-01", "2026-02-30", "2026-11-16T09:00:00Z", [], {}, [[]], {"": {}}, ["a", 1], "null", "-0",
)  # fmt: skip

Mutate = Callable[[Random, bytes, Sequence[bytes]], bytes]


def mutated(chance: Random, corpus: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """An input of the corpus, altered a few times."""
    data = chance.choice(corpus)
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        data = chance.choice(_MUTATIONS)(chance, data, words if words and chance.random() < 0.5 else corpus)
    return data[:MAX_INPUT_BYTES]


def _flip(chance: Random, data: bytes, _other: Sequence[bytes]) -> bytes:
    if not data:
        return bytes([chance.randrange(256)])
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def _put(chance: Random, data: bytes, _other: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(_WORDS) + data[at + chance.randrange(3) :]


def _remove(chance: Random, data: bytes, _other: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[at + chance.randrange(1, 9) :]


def _repeat(chance: Random, data: bytes, _other: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(data) + 1)
    part = data[at : at + chance.randrange(1, 40)]
    return data[:at] + part * chance.choice((2, 3, 50)) + data[at:]


def _splice(chance: Random, data: bytes, other: Sequence[bytes]) -> bytes:
    second = chance.choice(other)
    at, begin = chance.randrange(len(data) + 1), chance.randrange(len(second) + 1)
    return data[:at] + second[begin:] if chance.random() < 0.5 else data[:at] + second + data[at:]


def _json(chance: Random, data: bytes, other: Sequence[bytes]) -> bytes:
    """Another value, name or nesting somewhere in a JSON document."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return _put(chance, data, other)
    if not isinstance(document, dict | list) or not document:
        return json.dumps(chance.choice(_VALUES)).encode()
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = chance.choice(keys)
        if isinstance(place[key], dict | list) and place[key] and chance.random() < 0.7:
            place = place[key]
            continue
        break
    act = chance.randrange(4)
    if act == 0:
        place[key] = chance.choice(_VALUES)
    elif act == 1 and isinstance(place, dict):
        place[str(key).swapcase()] = place[key]
    elif act == 2:
        del place[key]
    else:
        place[key] = {"": place[key]} if chance.random() < 0.5 else [place[key]] * 3
    return json.dumps(document).encode()


_MUTATIONS: tuple[Mutate, ...] = (_flip, _put, _put, _remove, _repeat, _splice, _json, _json)
