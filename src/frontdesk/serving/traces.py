"""Turns tracing on where an endpoint is set. OpenTelemetry is an optional dependency and slow to import."""

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING

from frontdesk.logs import Lines
from frontdesk.serving.address import ServingError
from frontdesk.settings import Settings
from frontdesk.store.database import Database

if TYPE_CHECKING:
    from frontdesk.tracing import Tracing


def start_tracing(settings: Settings, lines: Lines) -> "Tracing | None":
    if settings.otlp_endpoint is None:
        return None
    from frontdesk.tracing import Tracing, add_trace_id

    logging.getLogger("opentelemetry").setLevel(logging.ERROR)  # while a collector is down, it warns of every attempt
    lines.addFilter(add_trace_id)
    return Tracing(settings.otlp_endpoint)


def check_installed(settings: Settings) -> None:
    """Raises ServingError if traces are wanted and OpenTelemetry is not installed."""
    if settings.otlp_endpoint is not None and find_spec("opentelemetry.sdk") is None:
        raise ServingError("FRONTDESK_OTLP_ENDPOINT needs OpenTelemetry: install frontdesk[otel].")


def database_type(tracing: "Tracing | None") -> type[Database]:
    if tracing is None:
        return Database
    from frontdesk.store.traced_database import traced_database

    return traced_database(tracing)
