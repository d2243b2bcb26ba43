"""Traces by OpenTelemetry, sent to a collector over OTLP. Imported only where an endpoint is set.

Spans hold names, ids and statuses, never what a caller sent or was answered, and no exception messages.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from frontdesk import __version__
from frontdesk.domain.errors import Problem

Attributes = Mapping[str, str | int]

_EXPORT_SECONDS = 5
_SERVER_ERROR = 500
_HEADERS = TraceContextTextMapPropagator()


class Tracing:
    """The tracer of this process. Sampling and credentials follow OpenTelemetry's own variables (OTEL_...)."""

    def __init__(self, endpoint: str) -> None:
        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=_EXPORT_SECONDS)
        resource = Resource.create({"service.name": "frontdesk", "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("frontdesk", __version__)

    def close(self) -> None:
        """Sends what is left. Blocks."""
        self._provider.shutdown()

    def answering(self, name: str, headers: Mapping[str, str]) -> AbstractContextManager[Span]:
        """A span of the trace that a caller's headers name, or of a new one."""
        return self._span(name, SpanKind.SERVER, {}, _HEADERS.extract(headers, Context()))

    def continuing(self, name: str, headers: Mapping[str, str], attributes: Attributes) -> AbstractContextManager[Span]:
        """A span below the one that the headers name, or below the current one."""
        return self._span(name, SpanKind.INTERNAL, attributes, _named(headers))

    def calling(
        self, name: str, attributes: Attributes, headers: Mapping[str, str] | None = None
    ) -> AbstractContextManager[Span]:
        """A span around a request to another system, below the span that the headers name, or below the current one."""
        return self._span(name, SpanKind.CLIENT, attributes, _named(headers or {}))

    def statement(self, sql: str) -> AbstractContextManager[Span | None]:
        """A span around a statement of a call; those of periodic work are not traced."""
        if not trace.get_current_span().is_recording():
            return nullcontext()
        text = " ".join(sql.split())
        name = text.partition("(")[0].partition(" WHERE ")[0]
        return self._span(name, SpanKind.CLIENT, {"db.system.name": "postgresql", "db.query.text": text})

    def headers(self) -> dict[str, str]:
        """The headers that continue the current trace at another system."""
        headers: dict[str, str] = {}
        _HEADERS.inject(headers)
        return headers

    @contextmanager
    def _span(
        self, name: str, kind: SpanKind, attributes: Attributes, context: Context | None = None
    ) -> Iterator[Span]:
        with self._tracer.start_as_current_span(
            name, context, kind, dict(attributes), record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except Exception as error:
                is_answer = isinstance(error, Problem) and error.status < _SERVER_ERROR
                span.set_attribute("error.type", error.code if isinstance(error, Problem) else type(error).__qualname__)
                if not is_answer:
                    span.set_status(StatusCode.ERROR)
                raise


def _named(headers: Mapping[str, str]) -> Context | None:
    """The context of the span that the headers name."""
    named = _HEADERS.extract(headers, Context())
    return named if trace.get_current_span(named).get_span_context().is_valid else None


def describe_current(name: str, attributes: Attributes) -> None:
    """Names the current span when what it is about is known."""
    span = trace.get_current_span()
    span.update_name(name)
    span.set_attributes(attributes)


def add_trace_id(record: logging.LogRecord) -> bool:
    """A filter of log handlers: lines that are written inside a span carry its trace id."""
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        record.traceId = f"{context.trace_id:032x}"
    return True
