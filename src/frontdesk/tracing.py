"""Spans of traces, made where calls, statements and requests to others happen. Nothing is recorded until `install`."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from starlette.types import Scope

Attributes = Mapping[str, str | int]


class Span(Protocol):
    def set_attribute(self, name: str, value: str | int, /) -> object: ...


class _NoSpan:
    def __enter__(self) -> "_NoSpan":
        return self

    def __exit__(self, *_: object) -> None: ...

    def set_attribute(self, _name: str, _value: str | int, /) -> None: ...


_NO_SPAN = _NoSpan()


class Tracer:
    """Records nothing."""

    records = False

    def request(self, _scope: Scope, /) -> AbstractContextManager[Span]:
        """A span around the answer to an ASGI request, of the trace that its headers name, or of a new one."""
        return _NO_SPAN

    def tool_call(self, _name: str, _meta: Mapping[str, object], /) -> AbstractContextManager[Span]:
        """A span around an MCP tool call, below the span that its `_meta` names, or below the current one."""
        return _NO_SPAN

    def operation(self, _name: str, /) -> AbstractContextManager[Span]:
        return _NO_SPAN

    def statement(self, _sql: str, /) -> AbstractContextManager[Span]:
        """A span around a statement of a call; those of periodic work are not traced."""
        return _NO_SPAN

    def request_to(
        self, _name: str, _attributes: Attributes, _traceparent: str | None = None, /
    ) -> AbstractContextManager[Span]:
        """A span around a request to another system, below the span of the traceparent, or below the current one."""
        return _NO_SPAN

    def headers(self) -> dict[str, str]:
        """The headers that continue the current trace at another system."""
        return {}


tracer = Tracer()  # of this process


def install(new: Tracer) -> None:
    global tracer
    tracer = new
