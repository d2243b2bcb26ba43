"""Traces: what is sent to a collector, and how a trace goes on at other systems."""

import asyncio
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from frontdesk.app import build_app, build_service
from frontdesk.cli import alert_checks
from frontdesk.domain.errors import Problem
from frontdesk.outbound.webhooks.deliverer import Deliverer
from frontdesk.outbound.webhooks.sender import Sender
from frontdesk.serving import ServingError, traces
from frontdesk.serving.otlp import OtlpTracer, add_trace_id, describe_request
from frontdesk.settings import Settings
from frontdesk.store.database import Database
from frontdesk.systems.fhir.settings import fhir_settings
from frontdesk.systems.fhir.transport.deadline import Deadline
from frontdesk.systems.fhir.transport.request_sender import Request, RequestSender
from frontdesk.tracing import Tracer, install
from tests.support.otlp_receiver import Collector, collecting
from tests.support.world import World, patient_id, slots
from tests.webhooks.desk import Desk, build_desk
from tests.webhooks.receiver import receiving

TRACE = "0af7651916cd43dd8448eb211c80319c"
OTHER = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


@pytest.fixture
def tracing(collector: Collector) -> Iterator[OtlpTracer]:
    """The tracer of the process during a test. `close` sends the spans."""
    tracing = OtlpTracer(collector.url)
    install(tracing)
    yield tracing
    install(Tracer())
    tracing.close()


async def test_a_call_is_traced_through_both_doors_to_its_statements(
    world: World, collector: Collector, tracing: OtlpTracer
) -> None:
    service = build_service(world.service.settings, world.database, world.clock)
    service.requests.observers.append(describe_request)
    await service.ring.load()
    app = build_app(service)
    token = (await world.client()).headers["Authorization"]
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://test", headers={"Authorization": token}
    ) as client:
        headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
        given = await client.get("/api/appointments", headers=headers)
        fresh = await client.get("/api/providers")
        refused = await client.get("/api/patients/pat_unknown")
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {
                "name": "get_practice",
                "arguments": {},
                "_meta": {"traceparent": f"00-{OTHER}-{PARENT}-01"},
            },
        }
        accept = {"Accept": "application/json, text/event-stream"}
        tool = await client.post("/mcp", json=call, headers=accept)
    await asyncio.to_thread(tracing.close)

    assert given.headers["x-svc-trace-id"] == TRACE
    found = collector.trace(TRACE)
    request, engine = found["rest list_appointments"], found["execute list_appointments"]
    assert request.parent_span_id.hex() == PARENT
    assert engine.parent_span_id == request.span_id
    statements = [span for name, span in found.items() if name.startswith("SELECT")]
    assert engine.span_id in {span.parent_span_id for span in statements}
    attributes = {each.key: each.value.string_value or each.value.int_value for each in request.attributes}
    assert attributes["http.response.status_code"] == 200
    assert attributes["frontdesk.practice"] == "harbor"

    assert "rest list_providers" in collector.trace(fresh.headers["x-svc-trace-id"]), "the request id is the trace id"
    refusal = collector.trace(refused.json()["requestId"])["execute get_patient"]
    assert {each.key: each.value.string_value for each in refusal.attributes}["error.type"] == "not_found"
    assert (refusal.status.code, list(refusal.events)) == (0, []), "an answer is no error, and no message is recorded"

    called = collector.trace(OTHER)
    assert called["tools/call get_practice"].parent_span_id.hex() == PARENT
    assert called["execute get_practice"].parent_span_id == called["tools/call get_practice"].span_id
    assert "mcp get_practice" in collector.trace(tool.headers["x-svc-trace-id"])


async def test_webhooks_and_requests_to_fhir_servers_carry_their_trace(
    database: Database, collector: Collector, tracing: OtlpTracer
) -> None:
    desk = await build_desk(database)
    sender = Sender(allow_private=True)
    node = Deliverer(desk.database, desk.cipher, sender, desk.paused.append, desk.clock)
    async with receiving() as receiver:
        await desk.endpoint(receiver.url())
        await desk.happen("apt_1")
        await asyncio.gather(*(await node.start_due()))
        await node.close()
    (message,) = receiver.attempts

    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["traceparent"])
        return httpx.Response(503)

    settings = fhir_settings({"kind": "fhir", "baseUrl": "http://ehr.example/fhir", "locations": {}, "providers": {}})
    sender = RequestSender(settings, {})
    await sender._http.aclose()
    sender._http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    await sender.send(Deadline(30), Request("GET", "http://ehr.example/fhir/Slot?name=Ada", "search Slot"))
    await sender.close()
    await asyncio.to_thread(tracing.close)

    for header, name, status in (
        (message.headers["traceparent"], "webhook appointment.booked", 200),
        (seen[0], "FHIR search Slot", 503),
    ):
        _, trace_id, span_id, _ = header.split("-")
        span = collector.trace(trace_id)[name]
        assert span.span_id.hex() == span_id
        statuses = {each.key: each.value.int_value for each in span.attributes}
        assert statuses["http.response.status_code"] == status
    assert not any(b"Ada" in body or receiver.url().encode() in body for body in collector.bodies)


async def test_the_webhook_of_a_write_continues_its_trace(
    world: World, collector: Collector, tracing: OtlpTracer
) -> None:
    sender = Sender(allow_private=True)
    practice_id = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = 'harbor'")
    desk = Desk(world.database, practice_id, world.clock)
    node = Deliverer(desk.database, desk.cipher, sender, desk.paused.append, desk.clock)
    service = build_service(world.service.settings, world.database, world.clock)
    await service.ring.load()
    caller = await world.client(grant="integration")
    body = {"patientId": await patient_id(caller), "slotId": (await slots(caller))[0]["id"]}
    async with receiving() as receiver:
        await desk.endpoint(receiver.url())
        traced = httpx.ASGITransport(app=build_app(service))
        headers = {**caller.headers, "traceparent": f"00-{TRACE}-{PARENT}-01"}
        async with httpx.AsyncClient(transport=traced, base_url="http://test", headers=headers) as client:
            booked = await client.post("/api/appointments", json=body)
        await asyncio.gather(*(await node.start_due()))
        await node.close()
    await asyncio.to_thread(tracing.close)

    assert booked.status_code == 201, booked.text
    (message,) = receiver.attempts
    spans = collector.trace(TRACE)
    sent = spans["webhook appointment.booked"]
    assert sent.parent_span_id == spans["execute book_appointment"].span_id
    assert message.headers["traceparent"] == f"00-{TRACE}-{sent.span_id.hex()}-01"


def test_log_lines_inside_a_span_carry_its_trace_id_and_errors_no_message(collector: Collector) -> None:
    tracing = OtlpTracer(collector.url)
    inside, outside = logging.makeLogRecord({}), logging.makeLogRecord({})

    def fail(error: Exception, traceparent: str, record: logging.LogRecord) -> None:
        with tracing.request({"path": "/api/patients", "headers": [(b"traceparent", traceparent.encode())]}):
            add_trace_id(record)
            raise error

    with pytest.raises(ValueError, match="Ada"):
        fail(ValueError("Ada"), f"00-{TRACE}-{PARENT}-01", inside)
    add_trace_id(outside)
    assert inside.__dict__["traceId"] == TRACE
    assert "traceId" not in outside.__dict__
    with pytest.raises(Problem):
        fail(Problem("internal"), "forged", logging.makeLogRecord({}))
    tracing.close()
    first, second = collector.spans
    assert [(each.key, each.value.string_value) for each in first.attributes] == [("error.type", "ValueError")]
    assert (first.status.code, first.status.message, second.status.code) == (2, "", 2)
    assert not any(b"Ada" in body for body in collector.bodies)


def test_an_endpoint_without_opentelemetry_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, otlp_endpoint="http://127.0.0.1:4318")
    traces.check_installed(settings)
    for name in [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)  # as if it was not installed
    traces.check_installed(Settings(data_dir=tmp_path))
    with pytest.raises(ServingError, match=r"^FRONTDESK_OTLP_ENDPOINT needs OpenTelemetry: .*\[otel\]\.$"):
        traces.check_installed(settings)
    assert alert_checks.traces(settings)[0] == "failed"
