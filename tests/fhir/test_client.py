"""Requests to a FHIR server: pages, sizes, conditions, and answers that no server should give."""

import gzip
from typing import Any

import orjson
import pytest

from frontdesk.systems.fhir.transport import answers, client
from frontdesk.systems.fhir.transport.client import AnswerLost, Declined
from frontdesk.systems.fhir.transport.deadline import Deadline
from frontdesk.systems.port import SystemUnavailable
from tests.fhir.door import Answer, Door
from tests.fhir.token_server import Open, Server, a_patient, as_json, door, open_client, server

__all__ = ["door", "open_client", "server"]


async def test_pages_are_followed_on_the_same_server_only(door: Door, open_client: Open, server: Server) -> None:
    def pages(method: str, target: str) -> Answer:
        entries = [{"resource": a_patient()}, {"resource": {"resourceType": "OperationOutcome"}}, "odd"]
        bundle: dict[str, Any] = {"resourceType": "Bundle", "entry": entries}
        if "page" not in target:
            bundle["link"] = [{"relation": "next", "url": f"{door.address}/Patient?page=2"}]
        return as_json(200, bundle)

    server.answers = pages
    assert len(await open_client().search(Deadline(30), "Patient", [("birthdate", "1985-12-10")])) == 2
    for elsewhere in ("http://127.0.0.1:1/fhir/Patient?page=2", f"{door.address}evil/Patient", "ht!tp://[", "//x/y"):
        link = [{"relation": "next", "url": elsewhere}]
        server.answers = lambda method, target, link=link: as_json(200, {"resourceType": "Bundle", "link": link})  # type: ignore[misc]
        with pytest.raises(SystemUnavailable):
            await open_client().search(Deadline(30), "Patient", [])


@pytest.mark.parametrize("record_id", ["x" * 100, "under_score"])
async def test_a_record_is_found_although_r4_does_not_allow_its_id(
    open_client: Open, server: Server, record_id: str
) -> None:
    """If it were left out, an appointment would not take its time."""
    entries = [{"resource": {"resourceType": "Appointment", "id": record_id}}]
    server.answers = lambda method, target: as_json(200, {"resourceType": "Bundle", "entry": entries})
    assert len(await open_client().search(Deadline(30), "Appointment", [])) == 1


async def test_pages_without_end_are_given_up(
    door: Door, open_client: Open, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_PAGES", 3)
    link = [{"relation": "next", "url": f"{door.address}/Patient?again"}]
    server.answers = lambda method, target: as_json(200, {"resourceType": "Bundle", "link": link})
    with pytest.raises(SystemUnavailable):
        await open_client().search(Deadline(30), "Patient", [])
    assert len(server.seen) == 3


async def test_an_answer_without_end_is_given_up(
    open_client: Open, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MAX_ANSWER_BYTES", 1000)
    server.answers = lambda method, target: as_json(200, a_patient(text="x" * 2000))
    with pytest.raises(SystemUnavailable):
        await open_client().read(Deadline(30), "Patient/1")


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, {}, b"<html>"),
        Answer(200, {}, b"[1]"),
        Answer(200, {}, b'{"resourceType": 7}'),
        Answer(200, {}, b'{"resourceType": "Patient", "id": "other"}'),
        Answer(302, {"location": "http://elsewhere/"}, b""),
        Answer(403, {}, b""),
        Answer(500, {}, b""),
        Answer(200, {"content-encoding": "gzip, gzip"}, gzip.compress(gzip.compress(orjson.dumps(a_patient())))),
    ],
)
async def test_a_read_takes_nothing_for_a_record_that_is_none(
    open_client: Open, server: Server, answer: Answer
) -> None:
    server.answers = lambda method, target: answer
    with pytest.raises(SystemUnavailable):
        await open_client().read(Deadline(30), "Patient/1")


@pytest.mark.parametrize("status", [404, 410])
async def test_a_record_that_is_gone_is_none(open_client: Open, server: Server, status: int) -> None:
    server.answers = lambda method, target: Answer(status, {}, b"")
    assert await open_client().read(Deadline(30), "Patient/1") is None
    server.answers = lambda method, target: Answer(status, {}, b'{"resourceType": "OperationOutcome"}')
    assert await open_client().read(Deadline(30), "Patient/1") is None
    server.answers = lambda method, target: Answer(status, {}, b"<html>the server moved out</html>")
    with pytest.raises(SystemUnavailable):
        await open_client().read(Deadline(30), "Patient/1")


async def test_a_write_carries_its_condition(open_client: Open, server: Server, door: Door) -> None:
    asking = open_client()
    await asking.update(Deadline(30), a_patient())
    assert server.seen[0]["if-match"] == 'W/"7"'
    await asking.create(Deadline(30), {"resourceType": "Patient"}, "identifier=a|b")
    assert server.seen[1]["if-none-exist"] == "identifier=a|b"
    assert server.seen[1]["content-type"] == "application/fhir+json"
    with pytest.raises(SystemUnavailable):
        await asking.update(Deadline(30), {"resourceType": "Patient", "id": "1"})
    assert len(server.seen) == 2, "what has no version is not written"


@pytest.mark.parametrize("status", [409, 412, 422, 400, 404])
async def test_a_declined_write_is_told_with_its_reason(open_client: Open, server: Server, status: int) -> None:
    issue = [{"severity": "error", "code": "required", "diagnostics": "Ada's phone"}]
    server.answers = lambda method, target: as_json(status, {"resourceType": "OperationOutcome", "issue": issue})
    with pytest.raises(Declined) as caught:
        await open_client().update(Deadline(30), a_patient())
    assert caught.value.reason == "The scheduling system found a value missing or invalid."
    assert "Ada" not in repr(vars(caught.value))
    assert caught.value.contended == (status in (409, 412))


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        (Answer(500, {}, b""), True),
        (Answer(503, {"Retry-After": "9"}, b""), True),
        (Answer(502, {}, b""), False),
        (Answer(504, {}, b""), False),
        (Answer(200, {}, b"thanks"), False),
        (Answer(201, {}, b""), False),
    ],
)
async def test_a_write_without_an_answer_is_never_repeated(
    open_client: Open, server: Server, answer: Answer, failed: bool
) -> None:
    server.answers = lambda method, target: answer
    with pytest.raises(AnswerLost) as caught:
        await open_client().create(Deadline(30), {"resourceType": "Patient"}, "identifier=a|b")
    assert caught.value.failed == failed
    assert len(server.seen) == 1
    if answer.status == 503:
        assert caught.value.retry_after == 9


@pytest.mark.parametrize(("status", "retry_after"), [(401, 300), (403, 300), (302, 300), (429, 120)])
async def test_a_write_that_was_turned_away_was_not_executed(
    open_client: Open, server: Server, status: int, retry_after: int
) -> None:
    server.answers = lambda method, target: Answer(status, {"Retry-After": "Fri, 31 Dec 2100 23:59:59 GMT"}, b"")
    with pytest.raises(SystemUnavailable) as caught:
        await open_client().update(Deadline(30), a_patient())
    assert caught.value.retry_after == retry_after


async def test_a_write_does_not_begin_without_time_to_hear_how_it_ended(open_client: Open, server: Server) -> None:
    with pytest.raises(SystemUnavailable):
        await open_client().update(Deadline(0.0), a_patient())
    assert server.seen == []
