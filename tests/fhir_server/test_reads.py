"""Reads and searches of the FHIR door: what a client of a practice's system sees of a practice here."""

from frontdesk.access.clients.records import AccessLimits
from tests.doors.rest_calls import log_lines
from tests.fhir_server.fhir_calls import BASE, bundle, every_page, ids, issue, resources
from tests.support.world import PRACTICE, World, book, patient_id

ADA = "given=Ada&family=Lovelace&phone=5550100199&birthdate=1985-12-10"


async def test_the_directory_is_read_and_searched(server: World) -> None:
    client = await server.client(grant="integration", scopes=["practices:read"])
    assert await ids(client, "PractitionerRole?location=Location/2") == ["11"]
    assert await ids(client, "PractitionerRole?practitioner=10,Practitioner/12") == ["10", "12"]
    role = await bundle(
        client, "PractitionerRole?_id=11&_include=PractitionerRole:practitioner&_include=PractitionerRole:location"
    )
    included = [(each["resourceType"], each["id"]) for each in resources(role, "include")]
    assert included == [("Practitioner", "11"), ("Location", "1"), ("Location", "2")]
    downtown = (await client.get(f"{BASE}/Location/1")).json()
    assert downtown["alias"] == ["Main Street"]
    assert downtown["address"] == {
        "line": ["1 Main Street"], "city": "Boston", "state": "MA", "postalCode": "02110", "country": "US"
    }  # fmt: skip
    assert await ids(client, "Location?name=main") == ["1"]
    assert await ids(client, "Location?_id=2,3&_count=1") == ["2"]
    assert await ids(client, "HealthcareService?service-type=urn:frontdesk:visit-type%7C21") == ["21-101", "21-102"]
    assert await ids(client, "HealthcareService?service-type=103") == ["22-103"]
    assert await ids(client, "HealthcareService?name=first+visit") == ["20-100"]
    assert await ids(client, "HealthcareService?name=long&service-type=102&_id=21-102,22-103") == ["21-102"]
    service = (await client.get(f"{BASE}/HealthcareService/21-102")).json()
    assert (service["name"], service["extension"][0]["valuePositiveInt"]) == ("Follow-up: Long follow-up", 45)
    assert await ids(client, "Schedule") == ["10-1", "11-1", "11-2", "12-1"]
    assert await ids(client, "Schedule?actor=Practitioner/11&actor=Location/2") == ["11-2"]
    assert await ids(client, "Schedule?actor:Practitioner=10") == ["10-1"]
    assert await ids(client, f"Schedule?actor=http://test{BASE}/Practitioner/10") == ["10-1"]
    assert await ids(client, "Schedule?actor=https://elsewhere.example.com/Practitioner/10") == []
    assert [each["id"] for each in await every_page(client, "Schedule?_count=1")] == ["10-1", "11-1", "11-2", "12-1"]
    for several in ("name=a,b", "name=a&name=b"):
        issue(await client.get(f"{BASE}/Practitioner?{several}"), 400, "validation", "value")
    long = await client.get(f"{BASE}/Location?name={'x' * 101}")
    assert issue(long, 422, "validation", "invalid")["expression"] == ["name"]
    before = (await client.get(f"{BASE}/Practitioner/10")).headers["etag"]
    for kind in ("Practitioner", "PractitionerRole", "Location", "HealthcareService", "Schedule"):
        assert await ids(client, f"{kind}?_lastUpdated=gt2026-11-15T08:00:00Z") == []
        assert len(await ids(client, f"{kind}?_lastUpdated=le2026-11-15T08:00:00Z")) > 1
    server.clock.advance(minutes=5)
    await server.import_file(PRACTICE.replace("SLUG", "harbor").replace("[Bob Chen]", "[Rob Chen]"))
    changed = await client.get(f"{BASE}/Practitioner/10", headers={"If-None-Match": before})
    assert (changed.status_code, changed.json()["name"][1]["text"]) == (200, "Rob Chen")
    assert changed.json()["meta"]["lastUpdated"] == "2026-11-15T08:05:00Z"
    assert await ids(client, "Practitioner?_lastUpdated=gt2026-11-15T08:00:00Z&name=rob") == ["10"]
    unchanged = {"If-Modified-Since": changed.headers["last-modified"]}
    assert (await client.get(f"{BASE}/Practitioner/10", headers=unchanged)).status_code == 304
    for missing in ("Schedule/10-2", "Schedule/10", "Schedule/10-1-1", "HealthcareService/20-101", "Location/3"):
        issue(await client.get(f"{BASE}/{missing}"), 404, "not_found", "not-found")
    issue(await client.get(f"{BASE}/Slot"), 403, "forbidden_scope", "forbidden")


async def test_open_times_are_slots(server: World) -> None:
    client = await server.client(grant="integration")
    follow_up = "service-type=urn:frontdesk:procedure%7C101"
    monday = f"Slot?schedule=Schedule/10-1&start=ge2026-11-16&start=lt2026-11-17&{follow_up}"
    slots = resources(await bundle(client, monday))
    offered = (await client.get(
        "/api/slots?providerId=10&locationId=1&visitTypeId=21&procedureId=101&from=2026-11-16&to=2026-11-16"
    )).json()["items"]  # fmt: skip
    assert [(slot["start"], slot["end"]) for slot in slots] == [(each["start"], each["end"]) for each in offered]
    assert {slot["status"] for slot in slots} == {"free"}
    read = await client.get(f"{BASE}/Slot/{slots[0]['id']}")
    assert (read.json()["status"], read.json()["start"]) == ("free", offered[0]["start"])

    bounded = "start=ge2026-11-16T14:15:00Z&start=lt2026-11-16T09:45:00-05:00"
    found = await every_page(client, f"Slot?schedule=10-1&{bounded}&{follow_up}")
    assert [slot["start"][11:16] for slot in found] == ["09:15", "09:30"]
    for prefix, first, count in (("gt", "09:30", 1), ("ge", "09:15", 2), ("le", "09:00", 2), ("eq", "09:15", 1)):
        upper = "&start=lt2026-11-16T09:45:00-05:00" if prefix in ("gt", "ge") else ""
        found = await every_page(
            client, f"Slot?schedule=10-1&start={prefix}2026-11-16T14:15:00Z{upper}&{follow_up}"
        )  # fmt: skip
        assert [slot["start"][11:16] for slot in found][:1] == [first], prefix
        assert len(found) == count, prefix
    at_once = await every_page(client, f"Slot?start=2026-11-16T14:00:00Z&{follow_up}")
    assert sorted(slot["schedule"]["reference"] for slot in at_once) == [
        "Schedule/10-1", "Schedule/11-1", "Schedule/12-1"
    ]  # fmt: skip
    at_once = f"Slot?start=2026-11-16T14:00:00Z&{follow_up}&schedule.actor=Practitioner/11"
    assert [slot["schedule"]["reference"] for slot in await every_page(client, at_once)] == ["Schedule/11-1"]
    assert await ids(client, f"{at_once}&schedule.actor:Location=2") == []
    everything = await every_page(client, "Slot?schedule=12-1&start=2026-11-16&_count=5")
    assert {slot["serviceType"][1]["coding"][0]["code"] for slot in everything} == {"101"}, "all that the provider does"
    assert len({slot["id"] for slot in everything}) == len(everything) == 12
    wide = await bundle(client, f"Slot?{follow_up}&_count=200&schedule=10-1")
    assert len(resources(wide)) == 200, "an open end reaches to the booking horizon"

    included = await bundle(
        client, f"{monday}&_count=3&_include=Slot:schedule&_include:iterate=Schedule:actor&status=free"
    )
    assert [f"{each['resourceType']}/{each['id']}" for each in resources(included, "include")] == [
        "Schedule/10-1", "Practitioner/10", "Location/1"
    ]  # fmt: skip
    for nothing in (
        "status=busy", "status:not=free", "schedule=10-2", "schedule=x", "start=ge9999-12-31", "start=lt0001-01-02",
        "start=2026-11-16&start=2026-12-16", "service-type=104",
    ):  # fmt: skip
        assert await ids(client, f"Slot?{nothing}") == [], nothing
    assert issue(await client.get(f"{BASE}/Slot?start=soon"), 400, "validation", "value")["expression"] == ["start"]
    issue(await client.get(f"{BASE}/Slot?start=2026-11-16T09:00:00"), 400, "validation", "value")

    agent = await server.client()
    await book(agent)
    assert (await client.get(f"{BASE}/Slot/{slots[0]['id']}")).json()["status"] == "busy"
    assert len(resources(await bundle(client, monday))) == len(slots) - 1
    other = await server.client("other")
    issue(await other.get(f"{BASE}/Slot/{slots[0]['id']}"), 404, "not_found", "not-found")


async def test_appointments_are_read_and_searched(server: World) -> None:
    client, agent = await server.client(grant="integration"), await server.client()
    for first in ("Ada", "José", "Alan"):
        await book(agent, first)
    ada = (await patient_id(agent))[4:]
    [found] = await every_page(client, f"Appointment?patient=Patient/{ada}")
    read = await client.get(f"{BASE}/Appointment/{found['id']}")
    assert read.json() == found
    assert (found["status"], found["start"], found["minutesDuration"]) == ("booked", "2026-11-16T09:00:00-05:00", 15)
    assert [each["actor"]["reference"] for each in found["participant"]] == [
        f"Patient/{ada}", "Practitioner/10", "Location/1"
    ]  # fmt: skip
    assert found["meta"]["lastUpdated"] == "2026-11-15T08:00:00Z"
    for known in ({"If-None-Match": read.headers["etag"]}, {"If-Modified-Since": read.headers["last-modified"]}):
        assert (await client.get(f"{BASE}/Appointment/{found['id']}", headers=known)).status_code == 304
    stale = {"If-Modified-Since": "Sun, 15 Nov 2026 07:59:59 GMT"}
    assert (await client.get(f"{BASE}/Appointment/{found['id']}", headers=stale)).status_code == 200

    everyone = [each["id"] for each in await every_page(client, "Appointment?_count=1")]
    assert len(everyone) == len(set(everyone)) == 3
    assert await ids(client, "Appointment?_sort=date") == everyone
    others = [each for each in everyone if each != found["id"]]
    assert await ids(client, "Appointment?date=2026-11-16&actor=Practitioner/10&location=1&status=booked") == everyone
    assert await ids(client, "Appointment?date=gt2026-11-16T14:00:00Z") == others
    assert await ids(client, "Appointment?date=ge2026-11-16T14:00:01Z&date=lt2026-11-16T14:30:00Z") == others[:1]
    assert await ids(client, f"Appointment?actor=Patient/{ada}&service-type=101") == [found["id"]]
    assert await ids(client, f"Appointment?_id={found['id']},unknown&date=2026-11-16") == [found["id"]]
    for nothing in (
        "practitioner=11", "practitioner=x", "status=arrived", "status:not=booked", "date=2026-11-17", "location=2",
        f"patient={'0' * 22}", "patient=x", "patient=Practitioner/10", "_lastUpdated=gt2026-11-15", "actor=Group/1",
        "service-type=urn:frontdesk:procedure%7C102", "date=ge2026-11-18&date=lt2026-11-16",
    ):  # fmt: skip
        assert await ids(client, f"Appointment?{nothing}") == [], nothing
    server.clock.advance(minutes=45)
    cancelling = await client.post(f"/api/appointments/apt_{found['id']}/cancel", json={"reason": "Travelling"})
    assert cancelling.status_code == 200
    [changed] = await every_page(client, "Appointment?_lastUpdated=gt2026-11-15T08:30:00Z")
    assert (changed["id"], changed["status"]) == (found["id"], "cancelled")
    assert changed["cancelationReason"] == {"text": "Travelling"}
    assert changed["meta"]["versionId"] != found["meta"]["versionId"]
    assert await ids(client, "Appointment?status:not=cancelled") == others
    assert (await bundle(client, "Appointment?_summary=count"))["total"] == 3

    with_people = await bundle(client, "Appointment?_count=2&_include=Appointment:patient&_include=Appointment:actor")
    assert [each["resourceType"] for each in resources(with_people, "include")] == [
        "Patient", "Practitioner", "Location", "Patient"
    ]  # fmt: skip
    calendar_only = await server.client(scopes=["appointments:read"])
    assert len(await ids(calendar_only, "Appointment")) == 3
    refused = await calendar_only.get(f"{BASE}/Appointment?_include=Appointment:patient")
    issue(refused, 403, "forbidden_scope", "forbidden")
    other = await server.client("other")
    assert await ids(other, "Appointment") == []
    issue(await other.get(f"{BASE}/Appointment/{found['id']}"), 404, "not_found", "not-found")


async def test_patients_are_matched_and_never_listed(server: World) -> None:
    client = await server.client(grant="integration")
    [ada] = resources(await bundle(client, f"Patient?{ADA}"))
    assert ada["name"] == [{"use": "official", "family": "Lovelace", "given": ["Ada"]}]
    assert ada["extension"][0]["valueCode"] == "existing"
    assert await ids(client, f"Patient?_id={ada['id']}") == [ada["id"]]
    assert [each["id"] for each in await every_page(client, f"Patient?_id=x,{ada['id']}&_count=1")] == [ada["id"]]
    issue(await (await server.client("other")).get(f"{BASE}/Patient/{ada['id']}"), 404, "not_found", "not-found")
    form = dict(pair.split("=") for pair in ADA.split("&"))
    posted = await client.post(f"{BASE}/Patient/_search", data=form)
    assert [entry["resource"]["id"] for entry in posted.json()["entry"]] == [ada["id"]]
    assert "Lovelace" not in posted.json()["link"][0]["url"], "links contain no personal data"
    found = await bundle(client, f"Patient?_id={ada['id']}&identifier:not=urn:x|secret-0199")
    assert "secret-0199" not in found["link"][0]["url"]
    with log_lines() as logged:
        missing = await client.get(f"{BASE}/Patient?birthdate=1985-12-10&family=Lovelace&name=Ada")
    [line] = [each for each in logged if each.get("door") == "fhir"]
    assert "Lovelace" not in missing.text + str(line)
    named = [each["expression"][0] for each in missing.json()["issue"]]
    assert (missing.status_code, named) == (422, ["given", "phone"])
    assert (await client.get(f"{BASE}/Patient")).status_code == 422
    for wrong in ("birthdate=1985", "birthdate=ge1985-12-10", "phone=1", "given=Ada,Bea", "birthdate=2999-01-01"):
        answer = await client.get(f"{BASE}/Patient?{ADA}".replace(*_replaced(wrong)))
        assert answer.json()["issue"][0]["expression"] == [wrong.partition("=")[0]], answer.text
    issue(await client.get(f"{BASE}/Patient?_id={ada['id']}&family=Hopper"), 422, "validation", "not-supported")
    assert await ids(client, f"Patient?{ADA.replace('Ada', 'Bea')}") == []
    async with server.database.transaction(1) as connection:
        audited = await connection.fetch("SELECT operation, outcome FROM audit_record ORDER BY record_id")
    assert [tuple(each) for each in audited][:2] == [("match_patient", "executed"), ("get_patient", "executed")]
    assert tuple(audited[-1]) == ("match_patient", "not_found")


def _replaced(wrong: str) -> tuple[str, str]:
    name = wrong.partition("=")[0]
    [given] = [each for each in ADA.split("&") if each.startswith(f"{name}=")]
    return given, wrong


async def test_limits_of_a_client_hold_at_the_fhir_door(server: World) -> None:
    """Every further operation counts as a call; budgets and known patients are the engine's."""
    booking = await server.client()
    await book(booking)
    await book(booking, "José")
    capped = await server.client(grant="integration", per_minute=3)
    people = f"{BASE}/Appointment?_include=Appointment:patient"
    assert (await capped.get(people)).status_code == 200, "a list and two patients"
    issue(await capped.get(people), 429, "rate_limited", "throttled")
    short = await server.client(grant="integration", per_minute=2)
    refused = await short.get(people)
    issue(refused, 429, "rate_limited", "throttled")
    assert '"minute";r=0' in refused.headers["ratelimit"]
    limited = await server.client(access_limits=AccessLimits(patients_per_hour=1))
    issue(await limited.get(people), 429, "rate_limited", "throttled")
    newcomer = await server.client(access_limits=AccessLimits(known_patients_only=True))
    assert await ids(newcomer, "Appointment") == []
    await bundle(newcomer, f"Patient?{ADA}")
    assert len(await ids(newcomer, "Appointment")) == 1
    guessing = await server.client()
    for last in range(20):
        answer = await guessing.get(f"{BASE}/Patient?{ADA.replace('5550100199', f'55501002{last:02}')}")
    issue(answer, 429, "rate_limited", "throttled")
