"""A gateway whose requests are spans. The request id is the trace id, so log lines and answers carry it."""

from frontdesk.doors.gateway import Gateway
from frontdesk.logs import RequestLabels
from frontdesk.tracing import Tracing, describe_current
from frontdesk.web.http_request import Receive, Scope, Send

_HEADERS = (b"traceparent", b"tracestate")
_UNTRACED = ("/healthz", "/readyz", "/metrics")


def traced_gateway(tracing: Tracing) -> type[Gateway]:
    class TracedGateway(Gateway):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or scope["path"] in _UNTRACED:
                await super().__call__(scope, receive, send)
                return
            given = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _HEADERS}
            with tracing.answering("request", given):
                others = [header for header in scope["headers"] if header[0] not in _HEADERS]
                ours = [(name.encode(), value.encode("latin-1")) for name, value in tracing.headers().items()]
                scope["headers"] = others + ours
                await super().__call__(scope, receive, send)

    return TracedGateway


def describe_request(labels: RequestLabels, _milliseconds: float, _request_id: str | None) -> None:
    """An observer of the request log: names the span of the request."""
    described = {
        "frontdesk.door": labels.door,
        "frontdesk.operation": labels.operation,
        "frontdesk.practice": labels.practice_slug,
        "frontdesk.client": labels.client_id,
        "frontdesk.error": labels.code,
        "http.request.method": labels.method,
        "http.response.status_code": labels.status,
    }
    name = labels.door if labels.operation is None else f"{labels.door} {labels.operation}"
    describe_current(name, {key: value for key, value in described.items() if value is not None})
