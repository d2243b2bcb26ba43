"""Turns tracing on where an endpoint is set. OpenTelemetry is an optional dependency and slow to import."""

import logging
from collections.abc import Callable
from importlib.util import find_spec

from frontdesk.logs import Lines
from frontdesk.serving.address import ServingError
from frontdesk.settings import Settings
from frontdesk.tracing import install
from frontdesk.web.request_log import RequestLog


def start_tracing(settings: Settings, lines: Lines, requests: RequestLog) -> Callable[[], None]:
    """Returns what sends the last spans when the process ends. Blocks."""
    if settings.otlp_endpoint is None:
        return lambda: None
    from frontdesk.serving.otlp import OtlpTracer, add_trace_id, describe_request

    logging.getLogger("opentelemetry").setLevel(logging.ERROR)  # while a collector is down, it warns of every attempt
    lines.addFilter(add_trace_id)
    requests.observers.append(describe_request)
    tracer = OtlpTracer(settings.otlp_endpoint)
    install(tracer)
    return tracer.close


def check_installed(settings: Settings) -> None:
    """Raises ServingError if traces are wanted and OpenTelemetry is not installed."""
    if settings.otlp_endpoint is None:
        return
    try:
        found = find_spec("opentelemetry.exporter.otlp.proto.http")
    except ModuleNotFoundError:  # of a package above it
        found = None
    if found is None:
        raise ServingError(
            "FRONTDESK_OTLP_ENDPOINT needs OpenTelemetry: install the wheel of frontdesk with its extra, [otel]."
        )
