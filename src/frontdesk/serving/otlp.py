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
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import Scope

from frontdesk import __version__
from frontdesk.domain.errors import Problem
from frontdesk.logs import RequestLabels
from frontdesk.tracing import Attributes, Tracer

_EXPORT_SECONDS = 5
_SERVER_ERROR = 500
_NAMES = ("traceparent", "tracestate")
_HEADERS = tuple(name.encode() for name in _NAMES)
_UNTRACED = ("/healthz", "/readyz", "/metrics")
_PROPAGATOR = TraceContextTextMapPropagator()


class OtlpTracer(Tracer):
    """Sampling and credentials follow OpenTelemetry's own variables (OTEL_...)."""

    records = True

    def __init__(self, endpoint: str) -> None:
        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=_EXPORT_SECONDS)
        resource = Resource.create({"service.name": "frontdesk", "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("frontdesk", __version__)

    def close(self) -> None:
        """Sends what is left. Blocks."""
        self._provider.shutdown()

    @contextmanager
    def request(self, scope: Scope, /) -> Iterator[Span]:
        """The request continues with the headers of its span, so that its request id is the trace id."""
        if scope["path"] in _UNTRACED:
            yield INVALID_SPAN
            return
        given = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _HEADERS}
        with self._span("request", SpanKind.SERVER, {}, _PROPAGATOR.extract(given, Context())) as span:
            others = [header for header in scope["headers"] if header[0] not in _HEADERS]
            ours = [(name.encode(), value.encode("latin-1")) for name, value in self.headers().items()]
            scope["headers"] = others + ours
            yield span

    def tool_call(self, name: str, meta: Mapping[str, object], /) -> AbstractContextManager[Span]:
        given = {key: value for key in _NAMES if isinstance(value := meta.get(key), str)}
        attributes = {"mcp.method.name": "tools/call"}
        return self._span(f"tools/call {name}", SpanKind.INTERNAL, attributes, _context_of(given))

    def operation(self, name: str, /) -> AbstractContextManager[Span]:
        return self._span(f"execute {name}", SpanKind.INTERNAL, {"frontdesk.operation": name})

    def statement(self, sql: str, /) -> AbstractContextManager[Span]:
        if not trace.get_current_span().is_recording():
            return nullcontext(INVALID_SPAN)
        text = " ".join(sql.split())
        name = text.partition("(")[0].partition(" WHERE ")[0]
        return self._span(name, SpanKind.CLIENT, {"db.system.name": "postgresql", "db.query.text": text})

    def request_to(
        self, name: str, attributes: Attributes, traceparent: str | None = None, /
    ) -> AbstractContextManager[Span]:
        context = None if traceparent is None else _context_of({"traceparent": traceparent})
        return self._span(name, SpanKind.CLIENT, attributes, context)

    def headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        _PROPAGATOR.inject(headers)
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


def _context_of(headers: Mapping[str, str]) -> Context | None:
    """The context of the span that the headers name."""
    context = _PROPAGATOR.extract(headers, Context())
    return context if trace.get_current_span(context).get_span_context().is_valid else None


def describe_request(labels: RequestLabels, _milliseconds: float, _request_id: str | None) -> None:
    """An observer of the request log: names the span of the request."""
    attributes = {
        "frontdesk.door": labels.door,
        "frontdesk.operation": labels.operation,
        "frontdesk.practice": labels.practice_slug,
        "frontdesk.client": labels.client_id,
        "frontdesk.error": labels.code,
        "http.request.method": labels.method,
        "http.response.status_code": labels.status,
    }
    span = trace.get_current_span()
    span.update_name(labels.door if labels.operation is None else f"{labels.door} {labels.operation}")
    span.set_attributes({key: value for key, value in attributes.items() if value is not None})


def add_trace_id(record: logging.LogRecord) -> bool:
    """A filter of log handlers: lines that are written inside a span carry its trace id."""
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        record.traceId = f"{context.trace_id:032x}"
    return True
