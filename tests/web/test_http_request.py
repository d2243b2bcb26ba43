"""What is read from the headers of a request."""

import gc
import weakref
from typing import Any

from frontdesk.web.http_request import HttpRequest, request_of


def read(*headers: tuple[bytes, bytes]) -> HttpRequest:
    return request_of(scope_of(*headers))


def scope_of(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"method": "GET", "path": "/", "query_string": b"", "headers": list(headers)}


def token_of(authorization: bytes) -> str | None:
    return read((b"host", b"desk"), (b"authorization", authorization)).token


def test_a_token_is_found_whatever_the_spelling_of_its_scheme() -> None:
    assert token_of(b"Bearer abc") == token_of(b"bearer  abc ") == "abc"
    assert token_of(b"Basic abc") is None
    assert read((b"host", b"desk")).token is None


def test_the_last_of_several_headers_counts_and_several_accepts_are_one_list() -> None:
    request = read((b"accept", b"a/b"), (b"x", b"1"), (b"accept", b"c/d"), (b"x", b"22"))
    assert request.headers == {b"accept": b"a/b, c/d", b"x": b"22"}


def test_a_request_is_read_once_and_freed_with_its_scope() -> None:
    scope = Scope(scope_of((b"authorization", b"Bearer abc")))
    assert request_of(scope) is request_of(scope)
    freed = weakref.ref(scope)
    gc.disable()
    try:
        del scope
        assert freed() is None
    finally:
        gc.enable()


class Scope(dict[str, Any]):
    """A dictionary that can be referenced weakly."""
