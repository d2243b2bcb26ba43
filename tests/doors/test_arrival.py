"""What is read from headers before anybody knows who sent them."""

from frontdesk.doors.arrival import _token_in, bearer_token


def test_a_token_is_found_whatever_the_spelling_of_its_scheme() -> None:
    assert bearer_token(b"Bearer abc") == bearer_token(b"bearer  abc ") == "abc"
    assert bearer_token(b"Basic abc") is None
    assert bearer_token(None) is None


def test_long_headers_are_read_and_not_remembered() -> None:
    before = _token_in.cache_info().currsize
    for letter in "abc":
        assert bearer_token(b"Bearer " + letter.encode() * 30_000) == letter * 30_000
    assert _token_in.cache_info().currsize == before
