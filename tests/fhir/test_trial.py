"""What a check says about the way open times are found, and what it tries where it may write."""

from collections.abc import AsyncIterator

import pytest

from frontdesk.operations import NEEDS
from frontdesk.store.practices import practice_id_of
from frontdesk.systems.check import check_system
from tests.fhir.door import Answer, Door, Fault, Request
from tests.fhir.practice import Upstream, opened
from tests.support.world import World


@pytest.fixture(params=["proposing-batch"])
async def door(request: pytest.FixtureRequest) -> AsyncIterator[Door]:
    async with opened(request.param) as door:
        yield door


async def _checked(world: World, *, write: bool = False) -> dict[str, tuple[str, str]]:
    practice_id = await practice_id_of(world.database, "harbor")
    assert practice_id is not None
    checked = await check_system(world.database, practice_id, NEEDS, {}, world.clock.now, write=write)
    return {each.subject: (each.state, each.detail) for each in checked.findings}


def _faults(found: dict[str, tuple[str, str]]) -> dict[str, str]:
    """Without the providers that have no schedule here."""
    kept = {subject: each for subject, each in found.items() if subject[-2:] not in ("11", "12")}
    return {subject: detail for subject, (state, detail) in kept.items() if state == "misconfigured"}


@pytest.mark.parametrize("door", ["proposing-batch", "fake", "ihe"], indirect=True)
async def test_writes_that_are_tried_are_taken_back(
    fhir: World, upstream: Upstream, request: pytest.FixtureRequest
) -> None:
    found = await _checked(fhir, write=True)
    steps = ("create a patient", "book", "move", "cancel", "update a patient", "left behind")
    assert {found[each][0] for each in steps} == {"works"}, found
    assert await upstream.live_appointments() == []
    assert await upstream.busy_slots() == set()
    [patient] = [each for each in await upstream.search("Patient") if each["name"][0]["family"] == "Check"]
    assert patient["active"] is False
    way = {"fake": "by free Slots", "proposing-batch": "by the server's $find and $book (medplum): Follow-up visit,"}
    server = request.node.callspec.params["door"]
    assert found["open times"][1].startswith(way.get(server, "by the server's $find and $book (ihe)"))
    async with fhir.database.transaction(1) as connection:
        for table in ("upstream_record", "upstream_write", "outbox", "intent"):
            assert await connection.fetchval(f"SELECT count(*) FROM {table}") == 0, table


async def test_operations_are_misconfigured_that_the_server_refuses(fhir: World, upstream: Upstream) -> None:
    refused: list[str] = []

    def harm(request: Request) -> Fault | None:
        return "forbidden" if request.method == "POST" and request.target.endswith(tuple(refused)) else None

    upstream.door.harm = harm
    upstream.door.backend.batches = False  # type: ignore[union-attr]
    refused.append("$book")
    found = await _checked(fhir, write=True)
    assert _faults(found).keys() == {"book", "book_appointment", "left behind"}

    refused[:] = ["$cancel"]
    found = await _checked(fhir, write=True)
    assert _faults(found).keys() >= {"cancel", "cancel_appointment"}
    [left] = await upstream.live_appointments()
    assert found["left behind"][1] == f"to be undone by you: Appointment/{left['id']}, which may be booked"
    refused[:] = ["/Patient"]
    assert _faults(await _checked(fhir, write=True)).keys() == {"create a patient", "create_patient", "update_patient"}


async def test_a_find_that_is_refused_or_proposes_other_times_is_told(
    fhir: World, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.fhir.proposing.DURATIONS", {"HealthcareService/follow-up": 20})
    faults = _faults(await _checked(fhir))
    assert faults["slots of provider 10"] == "$find proposes 20 minutes for Follow-up visit, the file says 15"

    async def refuse(request: Request, answer: Answer) -> Answer:
        return Answer(403, {}, b"") if "$find" in request.target else answer

    upstream.door.rewrite = refuse
    upstream.door.backend.batches = False  # type: ignore[union-attr]
    faults = _faults(await _checked(fhir))
    assert faults["slots of provider 10"] == "the server answered the Appointment/$find with status 403"
    assert faults["search_slots"] == faults["book_appointment"] == "the server refuses Appointment/$find"
