"""How many round trips to the database a call costs once everything that may be kept in memory is."""

from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from typing import Any

import httpx
import pytest

from frontdesk.doors.rest import RestDoor
from tests.support.world import PRACTICE, World, book, patient_id, slots

Call = Callable[[], Awaitable[httpx.Response]]

SEARCH = {
    "providerId": 10,
    "locationId": 1,
    "visitTypeId": 21,
    "procedureId": 101,
    "from": "2026-11-16",
    "to": "2026-11-30",
}
FIRST = "/api/slots/first-available"


@pytest.fixture
async def agent(world: World) -> AsyncIterator[httpx.AsyncClient]:
    """A client right at the door: the gateway counts calls in the background, and these statements are not a call's."""
    token = (await world.client()).headers["Authorization"]
    door = RestDoor(world.service.engine, world.service.settings, world.service.requests)
    transport = httpx.ASGITransport(app=door)  # type: ignore[arg-type]
    async with httpx.AsyncClient(
        transport=transport, base_url="http://test", headers={"Authorization": token}
    ) as client:
        yield client


async def cost(world: World, call: Call, status: int = 200) -> int:
    """Of a warm call. The least of several: every few seconds the client's status is read again beside a call."""
    counted = []
    for _ in range(4):
        before = world.database.statements
        answer = await call()
        counted.append(world.database.statements - before)
        assert answer.status_code == status, answer.text
    return min(counted[1:])


async def test_a_warm_token_check_costs_nothing(world: World, agent: httpx.AsyncClient) -> None:
    assert await cost(world, lambda: agent.get("/api/capabilities")) == 0
    assert await cost(world, lambda: agent.get("/api/slots"), 422) == 0
    refused = await world.client(scopes=["slots:read"])
    agent.headers["Authorization"] = refused.headers["Authorization"]
    assert await cost(world, lambda: agent.get("/api/practice"), 403) == 0


async def test_a_warm_directory_read_costs_nothing(world: World, agent: httpx.AsyncClient) -> None:
    for path in (
        "/api/practice",
        "/api/locations",
        "/api/locations/1",
        "/api/providers?locationId=1&name=chen",
        "/api/providers/10",
        "/api/visit-types",
        "/api/visit-types/21",
        "/api/visit-types/21/procedures",
    ):
        assert await cost(world, lambda path=path: agent.get(path)) == 0, path  # type: ignore[misc]


async def test_a_warm_search_costs_one_round_trip_however_much_it_finds(world: World, agent: httpx.AsyncClient) -> None:
    for query in (
        {**SEARCH, "limit": 1},
        {**SEARCH, "limit": 200},
        {**SEARCH, "to": "2026-11-16"},
        {**SEARCH, "providerId": 99},
        {**SEARCH, "from": "2027-11-16", "to": "2027-11-16"},
    ):
        assert await cost(world, lambda query=query: agent.get("/api/slots", params=query)) == 1, query  # type: ignore[misc]
    page = (await agent.get("/api/slots", params=SEARCH)).json()
    following = {**SEARCH, "cursor": page["nextCursor"]}
    assert await cost(world, lambda: agent.get("/api/slots", params=following)) == 1


async def test_the_earliest_slots_cost_one_round_trip_where_the_next_week_has_enough(
    world: World, agent: httpx.AsyncClient
) -> None:
    wanted: dict[str, Any] = {"visitTypeId": 22, "procedureId": 103}
    assert await cost(world, lambda: agent.get(FIRST, params=wanted)) == 1
    assert await cost(world, lambda: agent.get(FIRST, params={**wanted, "limit": 50})) == 1
    assert await cost(world, lambda: agent.get(FIRST, params={**wanted, "locationId": 99})) == 1, "nowhere to look"
    # Where the week has too few, it looks twice as far ahead each time, up to the horizon.
    assert await cost(world, lambda: agent.get(FIRST, params={**wanted, "locationId": 2, "limit": 50})) <= 5


async def test_many_providers_cost_no_more_than_one(world: World, agent: httpx.AsyncClient) -> None:
    more = "".join(
        f'  - {{id: {number}, name: P{number}, hours: [{{location: 1, days: [mon], from: "09:00", to: "12:00"}}]}}\n'
        for number in range(100, 160)
    )
    await world.import_file(PRACTICE.replace("SLUG", "harbor").replace("visitTypes:\n", f"{more}visitTypes:\n"))
    wanted = {"visitTypeId": 22, "procedureId": 103, "limit": 50}
    assert await cost(world, lambda: agent.get(FIRST, params=wanted)) == 1
    assert await cost(world, lambda: agent.get("/api/providers?limit=200")) == 0


async def test_a_slot_is_read_live_in_one_round_trip(world: World, agent: httpx.AsyncClient) -> None:
    slot = (await slots(agent))[0]
    assert await cost(world, lambda: agent.get(f"/api/slots/{slot['id']}")) == 1
    assert await cost(world, lambda: agent.get("/api/slots/slt_" + "A" * 40), 404) == 0


async def test_a_read_of_protected_data_costs_itself_and_its_audit_record(
    world: World, agent: httpx.AsyncClient
) -> None:
    patient = await patient_id(agent)
    ada = {"firstName": "Ada", "lastName": "Lovelace", "phone": "0199", "dob": "1985-12-10"}
    assert await cost(world, lambda: agent.get(f"/api/patients/{patient}")) == 2
    assert await cost(world, lambda: agent.post("/api/patients/match", json=ada)) == 3  # and its count
    listed = {"from": "2026-11-16"}
    assert await cost(world, lambda: agent.get("/api/appointments", params=listed)) == 3  # and its locations
    assert await cost(world, lambda: agent.get("/api/appointments", params={"patientId": patient})) == 3


async def test_a_booking_costs_one_round_trip_per_phase(world: World, agent: httpx.AsyncClient) -> None:
    patient = await patient_id(agent)
    offered = iter(await slots(agent))

    async def challenge() -> httpx.Response:
        return await agent.post("/api/appointments", json={"patientId": patient, "slotId": next(offered)["id"]})

    assert await cost(world, challenge, 428) == 1

    bodies = []
    for _ in range(4):
        body = {"patientId": patient, "slotId": next(offered)["id"]}
        token = (await agent.post("/api/appointments", json=body)).json()["confirmationToken"]
        bodies.append({**body, "confirmationToken": token})
    confirmed = iter(bodies)
    assert await cost(world, lambda: agent.post("/api/appointments", json=next(confirmed)), 201) == 1
    resent = bodies[-1]
    assert await cost(world, lambda: agent.post("/api/appointments", json=resent), 201) == 1


async def test_a_booking_of_an_integration_costs_one_round_trip(world: World, agent: httpx.AsyncClient) -> None:
    patient = await patient_id(agent)
    offered = iter(await slots(agent))
    agent.headers["Authorization"] = (await world.client(grant="integration")).headers["Authorization"]

    async def book_once(headers: dict[str, str]) -> httpx.Response:
        body = {"patientId": patient, "slotId": next(offered)["id"]}
        return await agent.post("/api/appointments", json=body, headers=headers)

    assert await cost(world, lambda: book_once({}), 201) == 1
    keys = (f"key-{number}" for number in count())
    assert await cost(world, lambda: book_once({"Idempotency-Key": next(keys)}), 201) == 1


async def test_naming_the_patient_costs_a_challenge_one_round_trip_and_its_confirmation_none(
    world: World, agent: httpx.AsyncClient
) -> None:
    appointment = await book(agent)
    path = f"/api/appointments/{appointment}/confirm"
    assert await cost(world, lambda: agent.post(path, json={}), 428) == 3, "the appointment, the name, the challenge"

    async def confirm() -> httpx.Response:
        return await agent.post(path, json={"confirmationToken": next(tokens)})

    tokens = iter([(await agent.post(path, json={})).json()["confirmationToken"] for _ in range(4)])
    assert await cost(world, confirm) <= 3


async def test_an_import_costs_the_next_search_one_more_look(world: World, agent: httpx.AsyncClient) -> None:
    assert await cost(world, lambda: agent.get("/api/slots", params=SEARCH)) == 1
    await world.import_file(PRACTICE.replace("SLUG", "harbor").replace("09:00", "10:00"))
    before = world.database.statements
    found = (await agent.get("/api/slots", params=SEARCH)).json()
    assert found["items"][0]["start"] == "2026-11-16T10:00:00-05:00"
    assert world.database.statements - before <= 3, "the client's status, the directory, the busy times"
    assert await cost(world, lambda: agent.get("/api/slots", params=SEARCH)) == 1
