"""What is read from headers before anybody knows who sent them."""

from collections.abc import MutableMapping
from typing import Any

import pytest

from frontdesk.doors.arrival import ANSWER_WHOLE, _heads, arrival_of, encoded, read_head, send_answer

BEARER = (b"authorization", b"Bearer abc")
TRACEPARENT = (b"traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")


def authorized(value: bytes) -> str | None:
    return read_head([(b"host", b"desk"), (b"authorization", value)]).token


def test_a_token_is_found_whatever_the_spelling_of_its_scheme() -> None:
    assert authorized(b"Bearer abc") == authorized(b"bearer  abc ") == "abc"
    assert authorized(b"Basic abc") is None
    assert read_head([(b"host", b"desk")]).token is None


def test_of_several_headers_the_last_counts_and_several_accepts_are_one_list() -> None:
    head = read_head([(b"accept", b"a/b"), (b"x", b"1"), (b"accept", b"c/d"), (b"x", b"22")])
    assert head.headers == {b"accept": b"a/b, c/d", b"x": b"22"}
    assert head.size == sum(map(len, (b"accept", b"a/b", b"x", b"1", b"accept", b"c/d", b"x", b"22")))


def test_the_same_headers_are_known_again_and_others_are_not() -> None:
    first = read_head([(b"host", b"desk"), (b"authorization", b"Bearer one")])
    assert read_head([(b"host", b"desk"), (b"authorization", b"Bearer one")]) is first
    others = [
        read_head([(b"host", b"desk"), (b"authorization", b"Bearer two")]),
        read_head([(b"authorization", b"Bearer one"), (b"host", b"desk")]),
        read_head([(b"host", b"desk"), (b"authorization", b"Bearer one"), (b"authorization", b"Bearer one")]),
    ]
    assert len({first.number, *(head.number for head in others)}) == 4


def test_long_headers_are_read_and_not_remembered() -> None:
    before = dict(_heads.items())
    for letter in "abc":
        head = read_head([(b"authorization", b"Bearer " + letter.encode() * 30_000)])
        assert (head.token, head.number) == (letter * 30_000, None)
    assert dict(_heads.items()) == before


@pytest.mark.parametrize(
    "raw",
    [
        [(b"host", b"desk")],
        [(b"authorization", b"Basic c2VjcmV0")],
        [BEARER, (b"cookie", b"session=secret")],
        [BEARER, (b"referer", b"http://desk/console/patients?name=Ada")],
        [BEARER, (b"idempotency-key", b"once")],
        [BEARER, TRACEPARENT],
    ],
    ids=["nobody", "secret", "session", "address", "write", "trace"],
)
def test_what_says_more_than_who_calls_or_comes_once_is_not_remembered(raw: list[tuple[bytes, bytes]]) -> None:
    before = dict(_heads.items())
    assert read_head(raw).number is None
    assert dict(_heads.items()) == before


def test_only_a_bounded_number_of_heads_is_remembered() -> None:
    for number in range(5000):
        read_head([BEARER, (b"x-number", b"%d" % number)])
    assert len(_heads) <= 1024
    assert _heads.get((BEARER, (b"x-number", b"4999"))) is not None


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: b", b"a\nb", b"a\rb", b"a\r\n"])
def test_no_value_begins_another_field(value: bytes) -> None:
    assert encoded([(b"a", b"1"), (b"b", b"")]) == b"a: 1\r\nb: \r\n"
    with pytest.raises(ValueError, match="more than one line"):
        encoded([(b"a", b"1"), (b"b", value)])


class Sent:
    """What an application would send with it."""

    def __init__(self) -> None:
        self.messages: list[MutableMapping[str, Any]] = []

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        self.messages.append(message)


@pytest.mark.parametrize("taken", [True, False])
async def test_an_answer_that_its_server_does_not_take_whole_is_sent_in_messages(*, taken: bool) -> None:
    offered: list[tuple[Any, ...]] = []
    sent = Sent()

    def whole(*answer: Any) -> bool:
        offered.append(answer)
        return taken

    arrival = arrival_of({"headers": [], ANSWER_WHOLE: whole})
    arrival.added = [(b"b", b"2")]
    await send_answer(sent, arrival, 200, [(b"a", b"1")], b"body")
    assert offered == [(arrival.scope, 200, b"a: 1\r\nb: 2\r\n", b"body")]
    assert arrival.started
    in_messages = [
        {"type": "http.response.start", "status": 200, "headers": [(b"a", b"1"), (b"b", b"2")]},
        {"type": "http.response.body", "body": b"body"},
    ]
    assert sent.messages == ([] if taken else in_messages)


async def test_a_refusal_may_end_its_connection_and_is_sent_in_messages() -> None:
    sent = Sent()

    def whole(*_answer: Any) -> bool:
        raise AssertionError("a refusal was handed over")

    await send_answer(sent, arrival_of({"headers": [], ANSWER_WHOLE: whole}), 413, [(b"connection", b"close")], b"")
    assert [message["type"] for message in sent.messages] == ["http.response.start", "http.response.body"]
