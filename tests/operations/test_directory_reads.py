"""The practice and its directory: records, name filters and pruning."""

from frontdesk.operations import OPERATIONS
from tests.support.world import PRACTICE, World, book, rules

LISTS = ("/api/locations", "/api/providers", "/api/visit-types", "/api/visit-types/21/procedures")

NAMES = """
practice: {slug: harbor, name: Harbor Family Medicine, timeZone: America/New_York}
locations:
  - {id: 1, name: Downtown, aliases: [Main Street, City Hall]}
  - {id: 2, name: "St. Mary's (North)"}
  - {id: 3, name: Zürich Höngg, aliases: [Straße 7]}
providers:
  - {id: 10, name: Dr. Robert Chen, aliases: [Bob Chen, Doctor Bobby Smith], hours: [HOURS]}
  - {id: 11, name: Dr. María Núñez-O'Brien, hours: [HOURS]}
  - {id: 12, name: Drew Doctorow, aliases: [Dr. J.R. Ewing], hours: [HOURS]}
visitTypes:
  - id: 20
    name: New patient exam
    patientKind: new
    procedures: [{id: 100, name: Exam, durationMinutes: 30, aliases: [check-up]}]
""".replace("HOURS", '{location: 1, days: [mon], from: "09:00", to: "12:00"}')


async def test_the_practice_record_has_the_decided_fields(world: World) -> None:
    agent = await world.client()
    assert (await agent.get("/api/practice")).json() == {
        "id": "harbor",
        "name": "Harbor Family Medicine",
        "timeZone": "America/New_York",
        "phone": "+1 555 0100",
        "schedulingSystem": "native",
        "supports": sorted(operation.name for operation in OPERATIONS),
    }


async def test_location_records_have_the_decided_fields_and_no_nulls(world: World) -> None:
    agent = await world.client()
    downtown = {
        "id": 1,
        "name": "Downtown",
        "aliases": ["Main Street"],
        "timeZone": "America/New_York",
        "phone": "+1 555 0101",
        "address": {
            "line1": "1 Main Street",
            "city": "Boston",
            "state": "MA",
            "postalCode": "02110",
            "country": "US",
        },
    }
    westside = {"id": 2, "name": "Westside", "aliases": [], "timeZone": "America/Los_Angeles"}
    assert (await agent.get("/api/locations")).json() == {"items": [downtown, westside], "limit": 50}
    assert (await agent.get("/api/locations/1")).json() == downtown
    assert (await agent.get("/api/locations/2")).json() == westside


async def test_provider_records_have_the_decided_fields_and_no_nulls(world: World) -> None:
    agent = await world.client()
    chen = {
        "id": 10,
        "name": "Dr. Robert Chen",
        "aliases": ["Bob Chen"],
        "specialty": "Family medicine",
        "locationIds": [1],
        "acceptsNewPatients": True,
    }
    nunez = {"id": 11, "name": "Dr. María Núñez", "aliases": [], "locationIds": [1, 2], "acceptsNewPatients": True}
    okafor = {"id": 12, "name": "Dr. Amara Okafor", "aliases": [], "locationIds": [1], "acceptsNewPatients": False}
    assert (await agent.get("/api/providers")).json() == {"items": [chen, nunez, okafor], "limit": 50}
    assert (await agent.get("/api/providers/10")).json() == chen
    assert (await agent.get("/api/providers/12")).json() == okafor


async def test_visit_type_and_procedure_records_have_the_decided_fields(world: World) -> None:
    agent = await world.client()
    exam = {"id": 20, "name": "New patient exam", "aliases": ["first visit"], "patientKind": "new"}
    follow_up = {
        "id": 21,
        "name": "Follow-up",
        "aliases": [],
        "description": "For patients we know.",
        "patientKind": "existing",
    }
    vaccination = {"id": 22, "name": "Vaccination", "aliases": [], "patientKind": "any"}
    assert (await agent.get("/api/visit-types")).json()["items"] == [exam, follow_up, vaccination]
    assert (await agent.get("/api/visit-types/21")).json() == follow_up
    assert (await agent.get("/api/visit-types/21/procedures")).json() == {
        "items": [
            {"id": 101, "name": "Follow-up visit", "aliases": [], "durationMinutes": 15},
            {"id": 102, "name": "Long follow-up", "aliases": [], "durationMinutes": 45},
        ],
        "limit": 50,
    }


async def test_capabilities_are_the_scopes_of_the_token(world: World) -> None:
    held = ["slots:read", "appointments:book"]
    agent = await world.client(scopes=held)
    answer = await agent.get("/api/capabilities")
    assert set(answer.json()) == {"capabilities"}
    assert sorted(answer.json()["capabilities"]) == sorted(held)


async def test_an_unknown_directory_id_is_not_found(world: World) -> None:
    agent = await world.client()
    for path in ("locations/3", "providers/13", "visit-types/23", "visit-types/23/procedures", "locations/2147483647"):
        answer = await agent.get(f"/api/{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path


async def test_directory_ids_in_a_path_are_read_like_any_other_field(world: World) -> None:
    agent = await world.client()
    for text, status, rule in (
        ("abc", 400, "Binding"),
        ("1.0", 400, "Binding"),
        ("2147483648", 400, "Binding"),
        ("-2147483649", 400, "Binding"),
        ("9" * 5000, 400, "Binding"),
        ("%00", 400, "Binding"),
        ("٣", 400, "Binding"),
        ("0", 422, "greaterThanZero"),
        ("-1", 422, "greaterThanZero"),
    ):
        answer = await agent.get(f"/api/locations/{text}")
        assert (answer.status_code, rules(answer)) == (status, {"locationId": rule}), text[:20]


async def test_names_are_found_however_people_write_them(world: World) -> None:
    await world.import_file(NAMES, prune=True)
    agent = await world.client()

    async def found(path: str, name: str) -> list[int]:
        return [item["id"] for item in (await agent.get(path, params={"name": name})).json()["items"]]

    for name, ids in (
        ("robert chen", [10]),
        ("CHEN", [10]),
        ("Dr Chen", [10]),
        ("doctor. chen", [10]),
        ("Chen, Robert", [10]),
        ("rob ch", [10]),
        ("bob", [10]),
        ("Robert Smith", []),  # a word of the name and a word of an alias: neither has both
        ("Bobby Smith", [10]),
        ("obert", []),  # the end of a word is not its start
        ("robertchen", []),
        ("maria nunez", [11]),
        ("MARÍA", [11]),
        ("Nun\u0303ez O’Brien", [11]),
        ("o'brien", [11]),
        ("obrien", [11]),
        ("dr", [10, 11, 12]),
        ("Doctor Dr.", [10, 11, 12]),
        ("", [10, 11, 12]),
        ("  - ", [10, 11, 12]),
        ("drew", [12]),
        ("doctoro", [12]),
        ("jr ewing", [12]),
        ("J. R. Ewing", [12]),
        ("ewing drew", []),
        ("nobody", []),
    ):
        assert await found("/api/providers", name) == ids, name
    for name, ids in (
        ("main", [1]),
        ("street main", [1]),
        ("main hall", []),
        ("st marys", [2]),
        ("north st. mary", [2]),
        ("zurich", [3]),
        ("strasse", [3]),
        ("STRASSE 7", [3]),
        ("honggerberg", []),
    ):
        assert await found("/api/locations", name) == ids, name
    assert await found("/api/visit-types", "exam new") == [20]
    assert await found("/api/visit-types/20/procedures", "check up") == [100]
    assert await found("/api/visit-types/20/procedures", "surgery") == []


async def test_a_name_filter_keeps_the_rules_for_text(world: World) -> None:
    agent = await world.client()
    for path in LISTS:
        assert rules(await agent.get(path, params={"name": "x" * 101})) == {"name": "maxLength"}
        assert rules(await agent.get(path, params={"name": "a\x00b"})) == {"name": "characters"}
        assert (await agent.get(path, params={"name": "x" * 100})).status_code == 200
        unreadable = await agent.get(path + "?name=%ff%fe")
        assert (unreadable.status_code, rules(unreadable)) == (400, {"name": "Binding"})


async def test_providers_are_filtered_by_location(world: World) -> None:
    agent = await world.client()

    async def found(**query: object) -> list[int]:
        answer = await agent.get("/api/providers", params=query)  # type: ignore[arg-type]
        assert answer.status_code == 200
        return [item["id"] for item in answer.json()["items"]]

    assert await found(locationId=1) == [10, 11, 12]
    assert await found(LOCATIONID=2) == [11]
    assert await found(locationId=2, name="maria") == [11]
    assert await found(locationId=2, name="chen") == []
    assert await found(locationId=99) == []
    assert rules(await agent.get("/api/providers", params={"locationId": 0})) == {"locationId": "greaterThanZero"}
    assert rules(await agent.get("/api/providers", params={"locationId": ""})) == {"locationId": "Binding"}


async def test_pruned_records_are_hidden_but_still_named_in_old_appointments(world: World) -> None:
    agent = await world.client()
    appointment_id = await book(agent, providerId=11, visitTypeId=22, procedureId=103)
    before = (await agent.get(f"/api/appointments/{appointment_id}")).json()
    kept = """
practice: {slug: harbor, name: Harbor, timeZone: America/New_York}
locations: [{id: 2, name: Westside}]
providers: [{id: 10, name: Dr. Chen, hours: [{location: 2, days: [mon], from: "09:00", to: "12:00"}]}]
visitTypes:
  - {id: 21, name: Follow-up, patientKind: existing, procedures: [{id: 102, name: Long, durationMinutes: 45}]}
"""
    await world.import_file(kept, prune=True)

    assert [item["id"] for item in (await agent.get("/api/locations")).json()["items"]] == [2]
    assert [item["id"] for item in (await agent.get("/api/providers")).json()["items"]] == [10]
    assert (await agent.get("/api/providers", params={"locationId": 1})).json()["items"] == []
    assert [item["id"] for item in (await agent.get("/api/visit-types")).json()["items"]] == [21]
    assert [item["id"] for item in (await agent.get("/api/visit-types/21/procedures")).json()["items"]] == [102]
    for gone in ("locations/1", "providers/11", "visit-types/22", "visit-types/22/procedures"):
        assert (await agent.get(f"/api/{gone}")).status_code == 404, gone
    assert (await agent.get(f"/api/appointments/{appointment_id}")).json() == before
    assert [item["id"] for item in (await agent.get("/api/appointments")).json()["items"]] == [appointment_id]

    await world.import_file(PRACTICE.replace("SLUG", "harbor"))
    assert (await agent.get("/api/providers/11")).status_code == 200, "importing a record again brings it back"


async def test_an_import_is_seen_although_its_announcement_was_lost(world: World) -> None:
    agent = await world.client()
    assert (await agent.get("/api/locations/1")).json()["name"] == "Downtown"
    callers = world.service.authenticator
    silent = world.service.authenticator.on_change
    callers.on_change = lambda *_: None  # type: ignore[method-assign]
    await world.import_file(PRACTICE.replace("SLUG", "harbor").replace("name: Downtown", "name: Uptown"))
    callers.on_change = silent  # type: ignore[method-assign]
    # A search reads the directory's version with its data, and the next read sees what it loaded.
    query = {"visitTypeId": 21, "procedureId": 101}
    assert (await agent.get("/api/slots/first-available", params=query)).status_code == 200
    assert (await agent.get("/api/locations/1")).json()["name"] == "Uptown"
