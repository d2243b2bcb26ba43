"""The log: one JSON object per line, one line per request, and nothing that a caller sent."""

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest

from frontdesk.logs import JsonLines, Lines, RequestLabels, _shared_labels, request_labels
from frontdesk.web.request_log import RequestLog, log_line, request_lines
from tests.support.world import World, patient_id


class Log:
    """What the service would have written, line by line."""

    def __init__(self) -> None:
        self.stream = StringIO()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["message"] == "request"]


@pytest.fixture
def log() -> Iterator[Log]:
    kept, ours = Log(), logging.getLogger("frontdesk")  # the HTTP client of the tests logs, too
    handler = logging.StreamHandler(kept.stream)
    handler.setFormatter(JsonLines())
    level = ours.level
    ours.addHandler(handler)
    ours.setLevel(logging.DEBUG)
    yield kept
    ours.removeHandler(handler)
    ours.setLevel(level)


async def test_every_request_is_one_line(world: World, log: Log) -> None:
    agent = await world.client()
    before = len(log.requests)
    answer = await agent.get("/api/locations", params={"name": "Downtown"})
    [line] = log.requests[before:]
    assert line.pop("milliseconds") > 0
    assert line.pop("at").endswith("+00:00")
    assert line == {
        "level": "info",
        "message": "request",
        "door": "rest",
        "operation": "list_locations",
        "practice": "harbor",
        "client": agent.headers["X-Test-Client"],
        "method": "GET",
        "status": 200,
        "requestId": answer.headers["X-SVC-TRACE-ID"],
    }


async def test_refused_requests_are_lines_too(world: World, log: Log) -> None:
    agent, reader, nobody = await world.client(), await world.client(scopes=["slots:read"]), world.anonymous()
    before = len(log.requests)
    answers = [
        await nobody.get("/api/practice"),
        await reader.get("/api/practice"),
        await agent.get("/api/locations/x"),
        await agent.get("/api/slots"),
        await agent.get("/api/locations/99"),
        await agent.get("/api/nothing"),
        await agent.delete("/api/practice"),
        await agent.post("/api/patients/match", content=b"x" * 70_000),
    ]
    lines = log.requests[before:]
    assert [line["status"] for line in lines] == [answer.status_code for answer in answers]
    assert [line["requestId"] for line in lines] == [answer.json()["requestId"] for answer in answers]
    assert "client" not in lines[0], "whose token is missing is not known"
    assert lines[1]["client"] == reader.headers["X-Test-Client"]
    assert all(line["client"] == agent.headers["X-Test-Client"] for line in lines[2:5])
    assert [line.get("operation") for line in lines[:4]] == [
        "get_practice",
        "get_practice",
        "get_location",
        "search_slots",
    ]


async def test_no_line_holds_what_a_caller_sent_or_was_answered(world: World, log: Log) -> None:
    agent = await world.client()
    ada = {"firstName": "Ada", "lastName": "Lovelace", "phone": "+1 555 010 0199", "dob": "1985-12-10"}
    patient = await patient_id(agent)
    await agent.post("/api/patients/match", json=ada)
    await agent.post("/api/patients/match", json={**ada, "Lovelace": 1})
    await agent.get(f"/api/patients/{patient}")
    await agent.get("/api/providers", params={"name": "Lovelace"})
    challenge = await agent.patch(f"/api/patients/{patient}", json={"email": "ada@example.com"})
    text = log.stream.getvalue().replace(agent.headers["X-Test-Client"], "")  # random: it may spell a first name
    token = agent.headers["Authorization"].removeprefix("Bearer ")
    for value in (*ada.values(), patient, "ada@example.com", token, challenge.json()["confirmationToken"]):
        assert value not in text


def written(record: logging.LogRecord) -> dict[str, Any]:
    text = JsonLines().format(record)
    assert "\n" not in text
    line: dict[str, Any] = json.loads(text)
    return line


def raised(error: BaseException) -> logging.LogRecord:
    try:
        raise error
    except BaseException:
        return logging.LogRecord("frontdesk", logging.ERROR, __file__, 1, "unexpected error", (), sys.exc_info())


def test_messages_of_exceptions_are_never_written() -> None:
    def fail() -> None:
        try:
            raise ValueError("Ada Lovelace")
        except ValueError as error:
            raise RuntimeError("born 1985-12-10") from error

    try:
        fail()
    except RuntimeError:
        line = written(logging.LogRecord("x", logging.ERROR, __file__, 1, "failed", (), sys.exc_info()))
    assert line["error"] == "RuntimeError"
    assert [frame for frame in line["trace"] if " in " not in frame] == ["RuntimeError", "ValueError"]
    assert any(frame.endswith(" in fail") for frame in line["trace"])
    assert "Ada" not in str(line)
    assert "1985-12" not in str(line)


def test_every_part_of_a_group_and_every_cause_is_traced_once() -> None:
    first, second = ValueError("Ada"), KeyError("Lovelace")
    first.__cause__, second.__cause__ = second, first  # each the other's cause
    line = written(raised(ExceptionGroup("Ada Lovelace", [first, OSError("Ada")])))
    assert [frame for frame in line["trace"] if " in " not in frame] == [
        "ExceptionGroup",
        "ValueError",
        "KeyError",
        "OSError",
    ]
    assert "Ada" not in str(line)


def test_what_cannot_be_written_as_json_is_written_as_text() -> None:
    record = logging.LogRecord("x", logging.INFO, __file__, 1, "a\nb \ud800", (), None)
    record.number, record.thing, record.nothing = 2**80, object, None
    line = written(record)
    assert line["message"] == "a\nb \ud800"
    assert line["number"] == 2**80
    assert "nothing" not in line


def test_a_configured_process_writes_json_lines_to_standard_error() -> None:
    program = """
import logging
from frontdesk.logs import configure_logging
configure_logging("info")
logging.getLogger("anyone").info("hello", extra={"requestId": "1"})
logging.getLogger("anyone").debug("hidden")
logging.getLogger("httpx").info("hidden")
try:
    raise ValueError("Ada Lovelace")
except ValueError:
    logging.getLogger("asyncio").exception("failed")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == ""
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert [(line["level"], line["message"]) for line in lines] == [("info", "hello"), ("error", "failed")]
    assert lines[0]["requestId"] == "1"
    assert "Ada" not in ended.stderr


REQUEST: dict[str, Any] = {
    "door": "rest", "operation": "get_slot", "practice_slug": "harbor", "practice_id": 1, "client_id": "fd_1",
    "method": "GET", "status": 200, "code": None,
}  # fmt: skip
REQUEST_ID = "0af7651916cd43dd8448eb211c80319c"


def note(requests: RequestLog, **changed: Any) -> None:
    requests.report(request_labels(**REQUEST | changed), 1.23456, REQUEST_ID)


@pytest.fixture
def lines() -> Iterator[tuple[Lines, Log]]:
    """The log as a server process writes it."""
    kept, ours = Log(), logging.getLogger("frontdesk")
    handler, level = Lines(kept.stream), ours.level
    ours.addHandler(handler)
    ours.setLevel(logging.INFO)
    yield handler, kept
    ours.removeHandler(handler)
    ours.setLevel(level)


async def test_a_method_that_somebody_made_up_is_neither_written_nor_kept(lines: tuple[Lines, Log]) -> None:
    handler, kept = lines
    for method in ("X" * 60_000, "Y" * 60_000):
        note(RequestLog(log_line), method=method)
        note(request_lines(handler), method=method)
        handler.flush()
        assert [line["method"] for line in kept.lines[-2:]] == ["OTHER", "OTHER"]
        assert request_labels(**REQUEST | {"method": method}) is request_labels(**REQUEST | {"method": "OTHER"})


def test_a_bounded_number_of_labels_is_kept() -> None:
    for status in range(5000):
        assert request_labels(**REQUEST | {"status": status}).status == status
    assert _shared_labels.cache_info().currsize <= 1024


async def test_the_short_way_writes_what_the_long_way_writes(lines: tuple[Lines, Log]) -> None:
    handler, kept = lines
    unknown = request_labels(**REQUEST | {"operation": None, "client_id": None, "method": "\ud800"})
    for labels, request_id in ((request_labels(**REQUEST), REQUEST_ID), (unknown, None)):
        log_line(labels, 1.23456, request_id)
        request_lines(handler).report(labels, 1.23456, request_id)
        handler.flush()
        long, short = kept.lines[-2:]
        earlier, later = (datetime.fromisoformat(line.pop("at")) for line in (long, short))
        assert abs(later - earlier) < timedelta(minutes=1)
        assert (short, list(short)) == (long, list(long))


async def test_lines_of_requests_are_written_soon_and_in_their_order(lines: tuple[Lines, Log]) -> None:
    handler, kept = lines
    requests = request_lines(handler)
    note(requests, status=1)
    note(requests, status=2)
    assert kept.lines == []
    logging.getLogger("frontdesk.anyone").warning("between")
    assert [line.get("status", line["message"]) for line in kept.lines] == [1, 2, "between"]
    note(requests, status=3)
    async with asyncio.timeout(30):
        while len(kept.lines) < 4:
            await asyncio.sleep(0.01)
    assert kept.lines[-1]["status"] == 3


async def test_many_lines_do_not_wait_for_their_moment(lines: tuple[Lines, Log]) -> None:
    handler, kept = lines
    requests = request_lines(handler)
    for number in range(1000):
        note(requests, status=number)
    written = [line["status"] for line in kept.lines]
    assert 800 < len(written) <= 1000
    assert written == list(range(len(written)))
    handler.flush()
    assert len(kept.lines) == 1000


def test_a_process_that_ends_has_written_every_line() -> None:
    program = """
import asyncio
from frontdesk.web.request_log import request_lines
from frontdesk.logs import configure_logging, request_labels
requests = request_lines(configure_logging("info"))
async def main():
    for number in range(250):
        requests.report(request_labels("rest", None, None, None, None, "GET", number, None), 0.0, None)
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert [json.loads(line)["status"] for line in ended.stderr.splitlines()] == list(range(250))


async def test_a_log_level_above_information_hides_requests_and_nothing_else(lines: tuple[Lines, Log]) -> None:
    handler, kept = lines
    logging.getLogger("frontdesk").setLevel(logging.WARNING)
    seen: list[tuple[RequestLabels, float, str | None]] = []
    requests = request_lines(handler)
    requests.observers.append(lambda *request: seen.append(request))
    note(requests)
    handler.flush()
    assert (kept.lines, seen) == ([], [(request_labels(**REQUEST), 1.23456, REQUEST_ID)])


async def test_an_observer_that_fails_keeps_nothing_from_the_others(lines: tuple[Lines, Log]) -> None:
    _, kept = lines

    def fail(*_request: object) -> None:
        raise RuntimeError("Ada Lovelace")

    seen: list[tuple[RequestLabels, float, str | None]] = []
    note(RequestLog(fail, lambda *request: seen.append(request)))
    assert seen == [(request_labels(**REQUEST), 1.23456, REQUEST_ID)]
    assert [(line["level"], line["error"]) for line in kept.lines] == [("error", "RuntimeError")]
    assert "Ada" not in str(kept.lines)
