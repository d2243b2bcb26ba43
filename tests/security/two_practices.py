"""Two practices side by side: one that attacks, and one whose every word is marked, so that a leak shows."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx

from frontdesk.audit.trail import seal
from frontdesk.operations import OPERATIONS, Operation
from frontdesk.practice_file import parse
from frontdesk.store.practices import import_practice
from tests.support.world import MONDAY, World, confirmed

BY_NAME = {operation.name: operation for operation in OPERATIONS}

VICTIM = """
practice: {slug: quixotic, name: Quixotic Clinic, timeZone: America/New_York, phone: "+1 555 7701"}
locations:
  - id: 901
    name: Zephyrhills
    aliases: [Zaragoza]
    phone: "+1 555 7702"
    address: {line1: 77 Xylophone Row, city: Zanesville, state: OH, postalCode: "43777-0907", country: US}
providers:
  - id: 910
    name: Dr. Xanthippe Vexford
    specialty: Zymology
    hours: [{location: 901, days: [mon, tue, wed, thu, fri], from: "09:00", to: "17:00"}]
visitTypes:
  - {id: 920, name: Yttrium visit, patientKind: any, procedures: [{id: 9100, name: Zither check, durationMinutes: 15}]}
patients:
  - {number: 777, firstName: Wilhelmina, lastName: Zweigelt, dob: 1907-07-17, phone: "+1 555 777 0777 7007",
     email: wilhelmina@quixotic.example, seen: true}
"""
# Long enough that no random id spells one by chance.
MARKS = (
    "uixotic", "ephyrhills", "aragoza", "ylophone", "anesville", "43777-0907", "anthippe", "exford", "ymology",
    "ttrium", "ither check", "ilhelmina", "weigelt", "1907-07-17", "77707777007", "777 0777", "555 770",
)  # fmt: skip
PERSON = {"firstName": "Wilhelmina", "lastName": "Zweigelt", "dob": "1907-07-17", "phone": "+1 555 777 0777 7007"}
NOBODY = {"firstName": "Nobody", "lastName": "Nowhere", "dob": "1907-07-18", "phone": "+1 555 000 0000"}
WINDOW = {"from": MONDAY.isoformat(), "to": (MONDAY + timedelta(days=4)).isoformat()}


@dataclass
class Side:
    """What one practice's own clients know of it."""

    slug: str
    agent: httpx.AsyncClient
    integration: httpx.AsyncClient
    ids: dict[str, Any]
    tokens: dict[str, str] = field(default_factory=dict)  # confirmation tokens by operation
    cursors: dict[str, str] = field(default_factory=dict)  # by operation
    keys: dict[str, str] = field(default_factory=dict)  # Idempotency-Keys by operation
    results: dict[str, dict[str, Any]] = field(default_factory=dict)  # what the keyed writes answered

    @property
    def marks(self) -> tuple[str, ...]:
        """Texts that nobody else may ever see."""
        ids = [str(value) for name, value in self.ids.items() if name in ("patientId", "appointmentId", "slotId")]
        clients = [client.headers["X-Test-Client"] for client in (self.agent, self.integration)]
        return (
            *MARKS,
            *ids,
            *clients,
            *self.cursors.values(),
            *(text for r in self.results.values() for text in r.values()),
        )


async def attacker(world: World) -> Side:
    person = {"firstName": "Ada", "lastName": "Lovelace", "dob": "1985-12-10", "phone": "+1 555 010 0199"}
    ids = {"locationId": 1, "providerId": 10, "visitTypeId": 21, "procedureId": 101, "number": 1}
    return await _filled(world, "harbor", ids, person)


async def victim(world: World) -> Side:
    await import_practice(world.database, parse(VICTIM), world.clock.now)
    ids = {"locationId": 901, "providerId": 910, "visitTypeId": 920, "procedureId": 9100, "number": 777}
    return await _filled(world, "quixotic", ids, PERSON)


async def _filled(world: World, slug: str, ids: dict[str, Any], person: dict[str, str]) -> Side:
    """Leaves rows of the practice in every table: a patient, appointments, open challenges, keys, audit, events."""
    agent, integration = await world.client(slug), await world.client(slug, grant="integration")
    side = Side(slug, agent, integration, ids)
    ids["patientId"] = (await agent.post("/api/patients/match", json=person)).json()["items"][0]["id"]
    search = {name: ids[name] for name in ("providerId", "locationId", "visitTypeId", "procedureId")} | WINDOW
    first = (await agent.get("/api/slots", params={**search, "limit": 3})).json()
    side.cursors["search_slots"] = first["nextCursor"]
    slots = [item["id"] for item in first["items"]]
    booking = {"patientId": ids["patientId"], "slotId": slots[0]}
    booked = await confirmed(agent, "POST", "/api/appointments", booking)
    ids["appointmentId"], ids["slotId"] = booked.json()["appointmentId"], slots[1]
    side.keys["book_appointment"] = "the same key in both practices"
    keyed = await integration.post(
        "/api/appointments",
        json={"patientId": ids["patientId"], "slotId": slots[2]},
        headers={"Idempotency-Key": side.keys["book_appointment"]},
    )
    side.results["book_appointment"] = keyed.json()
    page = (await agent.get("/api/appointments", params={"limit": 1})).json()
    side.cursors["list_appointments"] = page["nextCursor"]
    created = {**NOBODY, "firstName": "Zachariah", "lastName": f"Of {slug.title()}"}
    await confirmed(agent, "POST", "/api/patients", created)
    practice_id = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = $1", slug)
    assert await seal(world.database, practice_id) > 0
    for name in ("cancel_appointment", "confirm_attendance", "reschedule_appointment", "update_patient"):
        challenge = await call(agent, BY_NAME[name], arguments(name, ids))
        assert challenge.status_code == 428, challenge.text
        side.tokens[name] = challenge.json()["confirmationToken"]
    await world.service.limiter.return_leases()
    return side


def arguments(name: str, ids: dict[str, Any]) -> dict[str, Any]:
    """A request that is good at the practice whose ids are given, as one flat object."""
    given: dict[str, dict[str, Any]] = {
        "get_capabilities": {},
        "get_practice": {},
        "list_locations": {},
        "get_location": {"locationId": ids["locationId"]},
        "list_providers": {"locationId": ids["locationId"]},
        "get_provider": {"providerId": ids["providerId"]},
        "list_visit_types": {},
        "get_visit_type": {"visitTypeId": ids["visitTypeId"]},
        "list_procedures": {"visitTypeId": ids["visitTypeId"]},
        "search_slots": _directory(ids) | WINDOW,
        "find_first_available": _directory(ids),
        "get_slot": {"slotId": ids["slotId"]},
        "match_patient": dict(NOBODY),
        "get_patient": {"patientId": ids["patientId"]},
        "create_patient": dict(NOBODY),
        "update_patient": {"patientId": ids["patientId"], "email": "new@example.com"},
        "list_appointments": {"patientId": ids["patientId"], **_directory(ids)},
        "get_appointment": {"appointmentId": ids["appointmentId"]},
        "book_appointment": {"patientId": ids["patientId"], "slotId": ids["slotId"]},
        "cancel_appointment": {"appointmentId": ids["appointmentId"]},
        "confirm_attendance": {"appointmentId": ids["appointmentId"]},
        "reschedule_appointment": {"appointmentId": ids["appointmentId"], "slotId": ids["slotId"]},
    }
    return given[name]


def _directory(ids: dict[str, Any]) -> dict[str, Any]:
    return {name: ids[name] for name in ("providerId", "locationId", "visitTypeId", "procedureId")}


async def call(
    client: httpx.AsyncClient, operation: Operation, given: dict[str, Any], **headers: str
) -> httpx.Response:
    """Over REST."""
    path = operation.path.format(**{name: value for name, value in given.items() if f"{{{name}}}" in operation.path})
    rest = {name: value for name, value in given.items() if f"{{{name}}}" not in operation.path}
    if operation.method == "GET":
        return await client.get(f"/api{path}", params=rest, headers=headers)
    return await client.request(operation.method, f"/api{path}", json=rest, headers=headers)


async def call_tool(client: httpx.AsyncClient, operation: Operation, given: dict[str, Any]) -> httpx.Response:
    """The same over MCP."""
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": operation.name, "arguments": given},
    }
    return await client.post("/mcp", json=message, headers={"Accept": "text/event-stream"})
