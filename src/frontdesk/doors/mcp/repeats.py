"""Tool calls that came before, word for word but for the id of their message: what they say is known already.

A body without escapes in which `"id"` stands once can differ from one with the same text around the id in nothing else.
It counts with the headers it came with, which a body may contradict. Refuses to keep what is said about people: only
calls whose answers may be kept are.
"""

import re
from typing import Any, NamedTuple

from frontdesk.cache import BoundedCache
from frontdesk.doors.arrival import Head
from frontdesk.engine.answer_cache import Question
from frontdesk.operations import Operation

_MOST = 2048
_LARGEST = 1024
_ID = b'"id"'
_VALUE = re.compile(rb':[ \t\r\n]*(0|-?[1-9][0-9]{0,17}|"[ !#-\[\]-~]*")(?=[ \t\r\n,}])')


class ToolCall(NamedTuple):
    """What a message asks for. Its id, which is nobody else's, is not part of it."""

    operation: Operation
    given: dict[str, Any]
    simulate: str | None  # the code that a caller of a sandbox wants to see
    question: Question | None  # under which its answer may be kept
    modern: bool


class KnownCalls:
    def __init__(self) -> None:
        self._kept: BoundedCache[tuple[int | None, bytes, bytes], ToolCall] = BoundedCache(_MOST)

    def find(self, head: Head, body: bytes) -> tuple[ToolCall | None, bytes]:
        """The call, where it is known, and its own id as JSON."""
        parts = _around_id(body)
        if parts is None:
            return None, b""
        before, message_id, after = parts
        return self._kept.get((head.number, before, after)), message_id

    def keep(self, head: Head, body: bytes, call: ToolCall) -> None:
        if call.question is None or head.number is None or len(body) > _LARGEST:
            return
        parts = _around_id(body)
        if parts is not None:
            before, _, after = parts
            self._kept.put((head.number, before, after), call)


def _around_id(body: bytes) -> tuple[bytes, bytes, bytes] | None:
    before, _, rest = body.partition(_ID)
    value = _VALUE.match(rest)
    if value is None or _ID in rest or b"\\" in body:
        return None
    return before, value.group(1), rest[value.end() :]
