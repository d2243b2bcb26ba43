"""What doors read from the headers of a request."""

from frontdesk.doors.http_request import HttpRequest, request_of


def read(*headers: tuple[bytes, bytes]) -> HttpRequest:
    return request_of({"headers": list(headers)})


def token_of(authorization: bytes) -> str | None:
    return read((b"host", b"desk"), (b"authorization", authorization)).token


def test_a_token_is_found_whatever_the_spelling_of_its_scheme() -> None:
    assert token_of(b"Bearer abc") == token_of(b"bearer  abc ") == "abc"
    assert token_of(b"Basic abc") is None
    assert read((b"host", b"desk")).token is None


def test_the_last_of_several_headers_counts_and_several_accepts_are_one_list() -> None:
    request = read((b"accept", b"a/b"), (b"x", b"1"), (b"accept", b"c/d"), (b"x", b"22"))
    assert request.headers == {b"accept": b"a/b, c/d", b"x": b"22"}


def test_a_request_is_read_once() -> None:
    scope = {"headers": [(b"authorization", b"Bearer abc")]}
    assert request_of(scope) is request_of(scope)
    assert request_of({"headers": scope["headers"]}) is not request_of(scope)
