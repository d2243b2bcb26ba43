"""Which of the offered response formats the Accept header prefers."""

from collections.abc import Sequence
from functools import lru_cache

from frontdesk.domain.errors import Problem

_RAW = {  # the first is preferred
    "application/json": b"application/json",
    "text/json": b"text/json; charset=utf-8",
    "text/plain": b"text/plain; charset=utf-8",
}
OFFERED = tuple(_RAW)
MAX_ACCEPT_LENGTH = 1000  # of an Accept or Accept-Language header; the rest is not read


@lru_cache(maxsize=256)
def response_type(accept: bytes | None) -> bytes:
    """The Content-Type of the response; Problem `not_acceptable` if none is acceptable."""
    if accept is None or not accept.strip():
        return _RAW[OFFERED[0]]
    chosen = preferred(accept, OFFERED)
    if chosen is None:
        raise Problem("not_acceptable")
    return _RAW[chosen]


def preferred(accept: bytes, offers: Sequence[str]) -> str | None:
    """The media type that the header prefers, the first of equals; None if it accepts none."""
    ranges = [_range(part) for part in accept[:MAX_ACCEPT_LENGTH].decode("latin-1").lower().split(",") if part.strip()]
    best, chosen = 0.0, None
    for offered in offers:
        quality = _quality(offered, ranges)
        if quality > best:
            best, chosen = quality, offered
    return chosen


def _range(part: str) -> tuple[str, float]:
    media_range, *parameters = (piece.strip() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                quality = min(max(float(value), 0.0), 1.0)
            except ValueError:
                quality = 0.0
    return media_range, quality


def _quality(offered: str, ranges: list[tuple[str, float]]) -> float:
    """The most specific range that covers the type decides."""
    for wanted in (offered, offered.partition("/")[0] + "/*", "*/*"):
        qualities = [quality for media_range, quality in ranges if media_range == wanted]
        if qualities:
            return max(qualities)
    return 0.0
