"""Raw messages line by line; lines that both messages have are marked."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, TypeGuard
from urllib.parse import urlsplit

import orjson

from frontdesk.features.agent_view.exchange import Exchange, as_curl

_PAYLOAD_OPENS = ('    "arguments": {', '    "structuredContent": {')  # inside params or result, indented by two
_PAYLOAD_CLOSES = "    }"
_MEMBER = re.compile(r'( *)("(?:[^"\\]|\\.)*"): ?(.*)\Z')


@dataclass(frozen=True, slots=True)
class Line:
    indent: str
    name: str  # of a JSON member, quoted; empty for any other line
    text: str
    same: bool  # the other message has this line, too


@dataclass(frozen=True, slots=True)
class Pane:
    """One exchange, ready to be shown."""

    title: str
    about: str
    request: tuple[Line, ...]
    response: tuple[Line, ...]
    status: int
    succeeded: bool
    curl: str
    message: str  # the JSON-RPC body, or empty


def panes(
    left: Exchange, right: Exchange, public_url: str, titles: tuple[str, str], abouts: tuple[str, str]
) -> list[Pane]:
    requests = _members(_loaded(left.sent.body)), _members(_loaded(right.sent.body))
    responses = _members(left.frame), _members(right.frame)
    return [
        Pane(
            title,
            about,
            (*_head(_request_head(each, public_url)), *_json(_loaded(each.sent.body), requests[1 - side])),
            (*_head(_response_head(each)), *_json(each.frame, responses[1 - side], framed=each.is_stream)),
            each.status,
            each.status < 400 and not _is_error(each.frame),
            as_curl(public_url, each.sent),
            _message(each),
        )
        for side, (each, title, about) in enumerate(zip((left, right), titles, abouts, strict=True))
    ]


def _request_head(each: Exchange, public_url: str) -> Iterable[str]:
    yield f"{each.sent.method} {each.sent.target} HTTP/1.1"
    yield f"Host: {urlsplit(public_url).netloc}"
    yield from (f"{name}: {value}" for name, value in each.sent.headers)


def _response_head(each: Exchange) -> Iterable[str]:
    yield f"HTTP/1.1 {each.status} {each.reason}"
    yield from (f"{name}: {value}" for name, value in each.headers)


def _head(lines: Iterable[str]) -> list[Line]:
    return [*(Line("", "", line, same=False) for line in lines), Line("", "", "", same=False)]


def _json(document: object, others: Collection[str], *, framed: bool = False) -> list[Line]:
    """Indented for reading; on the wire it is one line."""
    if document is None:
        return []
    lines, inside = [], not _is_rpc(document)
    for text in _pretty(document):
        lines.append(_line(text, others if inside else ()))
        if text.startswith(_PAYLOAD_OPENS):
            inside = True
        elif text.startswith(_PAYLOAD_CLOSES):
            inside = not _is_rpc(document)
    if framed:
        first = Line("", "", "data: " + lines[0].text, same=False)
        return [Line("", "", "event: message", same=False), first, *lines[1:]]
    return lines


def _line(text: str, others: Collection[str]) -> Line:
    same = _bare(text) in others
    member = _MEMBER.match(text)
    if member is not None:
        return Line(member[1], member[2], f": {member[3]}", same)
    stripped = text.lstrip(" ")
    return Line(text[: len(text) - len(stripped)], "", stripped, same)


def _members(document: object) -> frozenset[str]:
    """The lines to compare: without brackets and without the JSON-RPC envelope."""
    if _is_rpc(document):
        document = document.get("params", {}).get("arguments") or document.get("result", {}).get("structuredContent")
    if document is None:
        return frozenset()
    return frozenset(bare for bare in map(_bare, _pretty(document)) if bare not in ("{", "}", "[", "]"))


def _bare(line: str) -> str:
    return line.strip().removesuffix(",")


def _pretty(document: object) -> list[str]:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode().split("\n")


def _loaded(body: bytes) -> object:
    return orjson.loads(body) if body else None


def _is_error(document: object) -> bool:
    if not isinstance(document, dict):
        return False
    result = document.get("result")
    return "error" in document or (isinstance(result, dict) and result.get("isError") is True)


def _is_rpc(document: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(document, dict) and "jsonrpc" in document


def _message(each: Exchange) -> str:
    document = _loaded(each.sent.body)
    return "\n".join(_pretty(document)) if _is_rpc(document) else ""
