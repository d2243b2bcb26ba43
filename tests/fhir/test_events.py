"""What others hear of a practice whose calendar lives in a FHIR server: webhooks once, and calendar feeds."""

import asyncio
from typing import Any

import httpx
import pytest
from icalendar import Calendar

from frontdesk.access.keys.encryption import KeyCipher
from frontdesk.features.calendar_feeds.feeds import add_feed
from frontdesk.outbound.webhooks.deliverer import Deliverer
from frontdesk.outbound.webhooks.endpoints import add_endpoint
from frontdesk.outbound.webhooks.sender import Sender
from frontdesk.store.directories import load_directory
from tests.fhir.calls import ZAPHOD, booking, challenged
from tests.fhir.door import Request
from tests.fhir.misbehaving import lose_answers
from tests.fhir.practice import Upstream, settle
from tests.support.world import World, book, confirmed, patient_id, slots
from tests.webhooks.receiver import Receiver, receiving

PRACTICE = 1
SECRET_KEY = "a secret key of the tests that is long enough"


async def _delivered(world: World, receiver: Receiver) -> list[Any]:
    """Everything that is due now, in the order in which it happened."""
    sender = Sender(allow_private=True, timeout_seconds=60)
    deliverer = Deliverer(world.database, KeyCipher([SECRET_KEY]), sender, lambda practice: None, world.clock)
    while started := await deliverer.start_due():
        await asyncio.gather(*started)
    await sender.close()
    received = sorted(receiver.received, key=lambda message: int(message.id.removeprefix("evt_")))
    return [message.document for message in received]


async def test_every_write_is_announced_once_with_ids_only(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    async with receiving() as receiver:
        await add_endpoint(fhir.database, KeyCipher([SECRET_KEY]), PRACTICE, receiver.url(), (), fhir.clock.now)
        created = await confirmed(agent, "POST", "/api/patients", ZAPHOD)
        zaphod = created.json()["patientId"]
        await confirmed(agent, "PATCH", f"/api/patients/{zaphod}", {"email": "zaphod@example.com"})
        appointment, ada = await book(agent), await patient_id(agent)
        path = f"/api/appointments/{appointment}"
        await confirmed(agent, "POST", f"{path}/confirm", {})
        await confirmed(agent, "POST", f"{path}/reschedule", {"slotId": (await slots(agent))[3]["id"]})
        await confirmed(agent, "POST", f"{path}/cancel", {"reason": "Zaphod is ill"})
        documents = await _delivered(fhir, receiver)
        text = str([message.body for message in receiver.received])
    both = {"appointmentId": appointment, "patientId": ada, "consent": "token"}
    assert [(document["type"], document["data"]) for document in documents] == [
        ("patient.created", {"patientId": zaphod, "consent": "token"}),
        ("patient.updated", {"patientId": zaphod, "consent": "token"}),
        ("appointment.booked", both),
        ("appointment.confirmed", both),
        ("appointment.rescheduled", both),
        ("appointment.cancelled", both),
    ]
    assert "Zaphod" not in text


async def test_a_lost_write_is_announced_once_it_is_known_and_a_refused_one_never(
    fhir: World, upstream: Upstream
) -> None:
    agent = await fhir.client()
    async with receiving() as receiver:
        await add_endpoint(fhir.database, KeyCipher([SECRET_KEY]), PRACTICE, receiver.url(), (), fhir.clock.now)
        body = await challenged(agent, "/api/appointments", await booking(agent))
        upstream.door.harm = lose_answers
        await agent.post("/api/appointments", json=body)
        upstream.door.reset()
        assert await _delivered(fhir, receiver) == []
        await settle(fhir)
        resent = await agent.post("/api/appointments", json=body)
        taken = await agent.post("/api/appointments", json={**body, "patientId": await patient_id(agent, "Alan")})
        assert taken.status_code == 409
        [document] = await _delivered(fhir, receiver)
    assert (document["type"], document["data"]["appointmentId"]) == (
        "appointment.booked",
        resent.json()["appointmentId"],
    )


async def _feed(world: World, *, with_names: bool) -> str:
    directory = (await load_directory(world.database, PRACTICE)).directory
    _, path = await add_feed(world.database, PRACTICE, directory, 10, with_names=with_names, now=world.clock.now)
    return path


async def _events(reader: httpx.AsyncClient, path: str) -> list[Any]:
    answer = await reader.get(path)
    assert answer.status_code == 200, answer.text
    return list(Calendar.from_ical(answer.content).walk("VEVENT"))


async def test_a_feed_shows_what_is_in_the_server(fhir: World, upstream: Upstream) -> None:
    agent, reader = await fhir.client(), fhir.anonymous()
    appointment = await book(agent)
    await book(agent, "Alan", procedureId=102)
    silent, telling = await _feed(fhir, with_names=False), await _feed(fhir, with_names=True)
    first, second = await _events(reader, silent)
    assert [each["summary"] for each in (first, second)] == ["Busy", "Busy"]
    assert (second["dtend"].dt - second["dtstart"].dt).total_seconds() == 45 * 60
    assert [each["summary"] for each in await _events(reader, telling)] == ["Ada Lovelace", "Alan Turing"]
    await confirmed(agent, "POST", f"/api/appointments/{appointment}/cancel", {})
    [left] = await _events(reader, telling)
    assert left["uid"] == second["uid"]


async def test_a_feed_with_names_takes_few_requests_however_many_there_are(fhir: World, upstream: Upstream) -> None:
    integration, path = await fhir.client(grant="integration"), await _feed(fhir, with_names=True)
    found = await slots(integration)
    people = [await patient_id(integration, name) for name in ("Ada", "Alan", "José")]
    asked = []
    for index in range(3):
        body = {"patientId": people[index], "slotId": found[index]["id"]}
        assert (await integration.post("/api/appointments", json=body)).status_code == 201
        upstream.door.reset()
        assert len(await _events(fhir.anonymous(), path)) == index + 1
        asked.append(len(upstream.door.seen))
    assert len(set(asked)) == 1, asked


@pytest.mark.parametrize("harmed", ["Appointment", "Patient"])
async def test_a_feed_of_a_server_that_is_away_says_so(fhir: World, upstream: Upstream, harmed: str) -> None:
    await book(await fhir.client())
    path = await _feed(fhir, with_names=True)

    def away(request: Request) -> Any:
        return "error_before" if f"/{harmed}" in request.target else None

    upstream.door.harm = away
    answer = await fhir.anonymous().get(path)
    assert (answer.status_code, answer.json()["code"]) == (502, "upstream_unavailable")
    assert int(answer.headers["retry-after"]) >= 1
