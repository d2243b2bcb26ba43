"""The practice by forms: each shows what it changes, leaves a file that round-trips, and is refused if stale."""

import html
import re
from dataclasses import replace

import httpx

from frontdesk.domain.directory import Directory, OpeningHours, TimeOff
from frontdesk.practice_file import dump, parse
from frontdesk.store.practices import export_practice, import_practice
from tests.console.admin_pages import EVIL, check_harmless, text_of
from tests.console.desk import records
from tests.console.filled_forms import form_of, send
from tests.console.signing_in import TEST_STAFF, signed_in
from tests.support.world import MONDAY, World, book, stored_directory

RULES = "/console/practice/rules"
PROVIDER = "/console/practice/providers/edit"
CHEN = f"{PROVIDER}?id=10"
LOCATION = "/console/practice/locations/edit"
VISIT_TYPE = "/console/practice/visit-types/edit"
CLOSURES = "/console/practice/closures"
HOLIDAYS = "/console/practice/closures/holidays"
PROCEDURE = "/console/practice/visit-types/procedure"


async def directory(world: World) -> Directory:
    """As stored; its export must be a practice file that says the same."""
    file = await export_practice(world.database, "harbor", with_patients=False)
    stored = await stored_directory(world.database, "harbor")
    assert file is not None
    assert stored is not None
    assert dump(parse(dump(file))) == dump(file)
    return stored


def errors(page: httpx.Response) -> dict[str, str]:
    """Beside the fields, each of which the summary leads to."""
    assert page.status_code == 422, page.text
    found = dict(re.findall(r'<p class="error" id="([\w.]+)-error">.*?<span>(.*?)</span>', page.text, re.DOTALL))
    assert set(re.findall(r'<li><a href="#([\w.]+)">', page.text)) == set(found)
    return {name: html.unescape(message) for name, message in found.items()}


async def apply(admin: httpx.AsyncClient, shown: httpx.Response, action: str, **fields: str) -> httpx.Response:
    assert shown.status_code == 200, shown.text
    assert "This is what changes" in shown.text
    return await send(admin, shown, action, step="apply", **fields)


async def test_forms_that_change_nothing_say_so_and_change_nothing(world: World, admin: httpx.AsyncClient) -> None:
    """Also for hours in unusual rows, and time that was blocked in the console."""
    file = await export_practice(world.database, "harbor", with_patients=False)
    assert file is not None
    chen = file.directory.providers[10]
    hours = (
        OpeningHours(1, frozenset({0}), 540, 720),
        OpeningHours(1, frozenset({1}), 540, 720),
        OpeningHours(2, frozenset({5}), 1320, 1440),
        OpeningHours(1, frozenset({3}), 600, 660, world.clock().date(), None),
    )
    away = tuple(
        TimeOff(world.clock().replace(tzinfo=None, hour=first), world.clock().replace(tzinfo=None, hour=last, day=20))
        for first, last in ((0, 0), (9, 0), (0, 17), (9, 17))
    )
    unusual = replace(chen, hours=hours, time_off=away, procedure_ids=frozenset())
    await import_practice(
        world.database,
        replace(file, directory=replace(file.directory, providers={**file.directory.providers, 10: unusual})),
        world.clock(),
    )
    block = {"who": "provider-10", "from": "2026-12-01", "reason": "Dentist"}
    assert (await admin.post("/console/blocks", data=block)).status_code == 303
    before = await directory(world)
    for page, action in (
        (RULES, RULES),
        (CHEN, PROVIDER),
        (f"{LOCATION}?id=1", LOCATION),
        (f"{VISIT_TYPE}?id=21", VISIT_TYPE),
        (f"{PROCEDURE}?visit_type=20&id=100", PROCEDURE),
    ):
        opened = await admin.get(page)
        shown = await send(admin, opened, action)
        assert "Nothing: the practice is already like this." in shown.text, text_of(shown)
        if action == PROVIDER:
            assert (await apply(admin, shown, action)).status_code == 303
            assert await directory(world) == before
    assert "Dentist" in (await admin.get(CHEN)).text


async def test_rules_are_previewed_applied_and_recorded(world: World, admin: httpx.AsyncClient) -> None:
    before = await directory(world)
    opened = await admin.get(RULES)
    fields = {"minimumNoticeMinutes": "120", "consent__cancelAppointment": "card", "knownPatientsOnly": "yes"}
    fields |= {"writesPerHour": "50", "upcomingPerPatient": "0"}
    shown = await send(admin, opened, RULES, **fields)
    text = text_of(shown)
    assert "Minimum notice 0 minutes 120 minutes" in text
    assert "Consent to cancel appointment nothing card" in text
    assert "Agents see all patients only patients that they know" in text
    assert "Writes of a kind an hour 200 50" in text
    assert "Upcoming appointments of a patient 20 unlimited" in text
    assert await directory(world) == before, "nothing was applied yet"
    answer = await apply(admin, shown, RULES)
    assert answer.headers["location"] == f"{RULES}?notice=practice_changed"
    practice = (await directory(world)).practice
    assert practice == replace(
        before.practice,
        minimum_notice_minutes=120,
        consent={"cancel_appointment": "card"},
        known_patients_only=True,
        writes_per_hour=50,
        upcoming_per_patient=0,
    )
    [record] = await records(world, operation="console.change_booking_rules")
    assert record["actor"] == admin.headers[TEST_STAFF]
    assert "changed the booking rules" in text_of(await admin.get("/console/audit"))


async def test_thousands_are_read_in_the_language_of_the_form(admin: httpx.AsyncClient) -> None:
    page = await send(admin, await admin.get(RULES), RULES, minimumNoticeMinutes="1.000")
    assert errors(page) == {"minimumNoticeMinutes": "Minimum notice in minutes must be a whole number, such as 1,000."}
    assert form_of(page, RULES)["minimumNoticeMinutes"] == ["1.000"]
    page = await send(admin, page, RULES, minimumNoticeMinutes="1,000")
    assert "Minimum notice 0 minutes 1,000 minutes" in text_of(page)
    admin.headers["Accept-Language"] = "de"
    page = await send(admin, await admin.get(RULES), RULES, minimumNoticeMinutes="1.000")
    assert "0 Minuten 1.000 Minuten" in text_of(page)


async def test_faults_stand_beside_their_fields_and_what_was_typed_stays(
    world: World, admin: httpx.AsyncClient
) -> None:
    before = await directory(world)
    page = await send(
        admin, await admin.get(RULES), RULES, name="", timeZone="Mars", bookingHorizonDays="many", matchMisses="101"
    )
    assert errors(page) == {
        "name": "Name of the practice is required.",
        "timeZone": "Time zone must be an IANA time zone like America/New_York.",
        "bookingHorizonDays": "Booking horizon in days must be a whole number, such as 1,000.",
        "matchMisses": "Failed matches of a person must be from 0 to 100.",
    }
    assert form_of(page, RULES)["bookingHorizonDays"] == ["many"]
    page = await send(
        admin,
        await admin.get(CHEN),
        PROVIDER,
        name=EVIL,
        specialty=EVIL + "x" * 100,
        hours__1__mon__0__to="08:00",
        hours__1__sat__0__from="08:00",
        away__0__from="2026-12-02",
        away__0__to="2026-12-01",
        period__0__from="08:00",
        period__0__to="09:00",
        period__0__first="2027-01-05",
    )
    check_harmless(page)
    assert errors(page) == {
        "specialty": "Specialty must be at most 100 characters long.",
        "hours.1.mon.0.to": "Monday, first time: to must be after from.",
        "hours.1.sat.0.to": "Saturday, first time: to is required.",
        "away.0.to": "The end must be after from.",
        "period.0.days": "Days must name at least one day.",
    }
    typed = form_of(page, PROVIDER)
    assert (typed["hours.1.sat.0.from"], typed["away.0.to"]) == (["08:00"], ["2026-12-01"])
    assert await directory(world) == before


async def test_hours_of_a_provider_are_edited_by_weekday(world: World, admin: httpx.AsyncClient) -> None:
    before = await directory(world)
    page = await send(admin, await admin.get(CHEN), PROVIDER, more="place", new_place="2")
    assert "America/Los_Angeles" in text_of(page)
    page = await send(admin, page, PROVIDER, more="2")
    assert "hours.2.sun.2.to" in form_of(page, PROVIDER), "a third time a day"
    shown = await send(
        admin,
        page,
        PROVIDER,
        **{f"hours__1__{day}__0__from": "08:00" for day in ("mon", "tue", "wed")},
        **{f"hours__1__fri__1__{end}": "" for end in ("from", "to")},
        hours__2__sat__0__from="20:00",
        hours__2__sat__0__to="00:00",
        away__0__from="2026-12-24",
        away__0__reason="Vacation",
        period__0__location="2",
        period__0__first="2026-12-05",
        period__0__last="2026-12-05",
        period__0__from="09:00",
        period__0__to="10:30",
    )
    text = text_of(shown)
    assert "Monday to Wednesday at Downtown 09:00–12:00, 13:00–17:00 08:00–12:00, 13:00–17:00" in text
    assert "Friday at Downtown 09:00–12:00, 13:00–17:00 09:00–12:00" in text
    assert "Saturday at Westside nothing 20:00–24:00" in text
    assert "Hours for a period nothing Westside, Saturday, 09:00–10:30, on 5 Dec 2026" in text
    assert "Away nothing Thu 24 Dec 2026 (Vacation)" in text
    assert "No booked appointment loses what it was booked for." in text
    assert (await apply(admin, shown, PROVIDER)).status_code == 303
    after = await directory(world)
    assert {**after.providers, 10: None} == {**before.providers, 10: None}
    assert after.locations == before.locations
    chen = after.providers[10]
    weekdays = [{0, 1, 2}, {0, 1, 2, 3}, {3, 4}, {5}, {5}]
    assert [row.days for row in chen.hours] == [frozenset(days) for days in weekdays]
    assert [(row.opens, row.closes) for row in chen.hours] == [
        (480, 720), (780, 1020), (540, 720), (1200, 1440), (540, 630),
    ]  # fmt: skip
    assert [f"{row.starts} {row.ends}" for row in chen.time_off] == ["2026-12-24 00:00:00 2026-12-25 00:00:00"]
    [record] = await records(world, operation="console.change_provider")
    assert (record["actor"], record["subject_ids"]) == (admin.headers[TEST_STAFF], ["provider 10"])


async def test_a_change_that_strands_patients_says_whom_and_asks(world: World, admin: httpx.AsyncClient) -> None:
    appointment = await book(await world.client())
    shown = await send(admin, await admin.get(CHEN), PROVIDER, having="remove")
    assert "1 booked appointment loses what it was booked for" in text_of(shown)
    assert f"/console/appointments/{appointment}" in shown.text
    undecided = await send(admin, shown, PROVIDER, step="apply")
    assert undecided.status_code == 409
    assert "First choose what becomes of the appointments" in undecided.text
    assert (await directory(world)).providers[10].active
    assert (await apply(admin, shown, PROVIDER, stranded="cancel")).status_code == 303
    assert not (await directory(world)).providers[10].active
    assert "cancelled" in (await admin.get(f"/console/appointments/{appointment}")).text.lower()
    assert [each["subject_ids"] for each in await records(world, operation="console.remove_provider")] == [
        ["provider 10"]
    ]
    assert (await admin.get(CHEN)).status_code == 404
    added = await send(admin, await admin.get(PROVIDER), PROVIDER, name="Dr. New", place="1")
    assert (await apply(admin, added, PROVIDER)).status_code == 303
    assert (await directory(world)).providers[13].name == "Dr. New", "the id of a removed provider stays taken"


async def test_the_second_of_two_editors_is_refused_and_loses_nothing(world: World, admin: httpx.AsyncClient) -> None:
    other = await signed_in(world, role="admin", name="Bea")
    mine, theirs = await admin.get(CHEN), await other.get(CHEN)
    ready = await send(admin, await admin.get(RULES), RULES, minimumNoticeMinutes="45")
    applied = await send(other, theirs, PROVIDER, specialty="Surgery")
    assert (await apply(other, applied, PROVIDER)).status_code == 303
    late = await send(admin, ready, RULES, step="apply")
    refused = await send(admin, mine, PROVIDER, aliases="Rob")
    for answer in (late, refused):
        assert answer.status_code == 409
        assert "has changed since you opened this form. Nothing was applied, and what you typed is kept" in answer.text
    assert form_of(late, RULES)["minimumNoticeMinutes"] == ["45"]
    assert form_of(refused, PROVIDER)["aliases"] == ["Rob"]
    assert "Specialty Surgery Family medicine" in text_of(refused), "what mine would take back"
    stored = await directory(world)
    assert (stored.practice.minimum_notice_minutes, stored.providers[10].specialty) == (0, "Surgery")
    shown = await send(admin, refused, PROVIDER, specialty="Surgery")
    assert (await apply(admin, shown, PROVIDER)).status_code == 303
    assert (await directory(world)).providers[10].aliases == ("Rob",)
    # An uploaded file takes part in the same order.
    opened = await admin.get(RULES)
    text = (await other.get("/console/practice/file.yaml")).text.replace("Westside", "West Side")
    uploaded = await other.post("/console/practice/preview", data={"text": text})
    assert (await send(other, uploaded, "/console/practice/apply")).status_code == 303
    assert (await send(admin, opened, RULES)).status_code == 409


async def test_records_are_added_changed_and_removed_with_what_refers_to_them(
    world: World, admin: httpx.AsyncClient
) -> None:
    before = await directory(world)
    address = {"line1": "2 Pier", "city": "Boston", "state": "MA", "postalCode": "02111", "country": "US"}
    typed = {f"address__{key}": value for key, value in address.items()}
    incomplete = await send(admin, await admin.get(LOCATION), LOCATION, name="Pier", address__city="Boston")
    assert errors(incomplete)["address.line1"] == "Street and number is required."
    shown = await send(admin, incomplete, LOCATION, **typed, aliases="Dock\n\n Quay ")
    assert "Pier Added" in text_of(shown)
    assert (await apply(admin, shown, LOCATION)).status_code == 303
    visit_type = {"name": "Therapy", "description": "For you.\r\nBring a towel.", "patientKind": "existing"}
    for action, query, fields in (
        (VISIT_TYPE, "", visit_type),
        (PROCEDURE, "?visit_type=23", {"name": "Massage", "durationMinutes": "50", "bufferAfterMinutes": "5"}),
        (PROCEDURE, "?visit_type=22&id=103", {"name": "Flu jab"}),
    ):
        shown = await send(admin, await admin.get(action + query), action, **fields)
        assert (await apply(admin, shown, action)).status_code == 303, query
    after = await directory(world)
    pier = after.locations[3]
    assert (pier.name, pier.aliases, pier.address) == ("Pier", ("Dock", "Quay"), address)
    assert pier.time_zone == before.practice.time_zone
    assert after.visit_types[23].description == "For you.\nBring a towel."
    assert [(each.id, each.name) for each in after.visit_types[23].procedures] == [(104, "Massage")]
    assert after.visit_types[22].procedures[0].name == "Flu jab"
    assert after.providers == before.providers

    removed = await send(admin, await admin.get(f"{LOCATION}?id=2"), LOCATION, having="remove")
    assert "Wednesday at Westside 09:00–12:00 nothing" in text_of(removed), "the hours of Dr. Núñez"
    assert (await apply(admin, removed, LOCATION)).status_code == 303
    page = await admin.get(f"{PROCEDURE}?visit_type=21&id=101")
    removed = await send(admin, page, PROCEDURE, having="remove")
    assert "Procedures Follow-up visit nothing" in text_of(removed), "of Dr. Okafor, who performs nothing else"
    assert (await apply(admin, removed, PROCEDURE)).status_code == 303
    last = await directory(world)
    assert (last.locations[2].active, last.providers[11].location_ids) == (False, (1,))
    assert last.providers[12].procedure_ids == frozenset()
    listed = text_of(await admin.get("/console/practice/visit-types"))
    assert "Massage 50 min, then 5 min free" in listed
    assert "Follow-up visit" not in listed
    done = [record["operation"] for record in await records(world) if record["operation"].endswith(("type", "edure"))]
    expected = ["add_visit_type", "add_procedure", "change_procedure", "remove_procedure"]
    assert done == [f"console.{name}" for name in expected]


async def test_closures_are_added_and_removed_and_say_whom_they_strand(world: World, admin: httpx.AsyncClient) -> None:
    await book(await world.client())
    day = MONDAY.isoformat()
    before = await directory(world)
    nowhere = await send(admin, await admin.get(CLOSURES), CLOSURES, **{"location": [], "from": day})
    assert errors(nowhere) == {"location": "Choose at least one location."}
    wrong = await send(admin, await admin.get(CLOSURES), CLOSURES, **{"from": "2026-12-31", "to": "2026-12-30"})
    assert errors(wrong) == {"to": "Last day must not be before from."}
    shown = await send(admin, wrong, CLOSURES, **{"from": day, "to": "", "reason": "Flood"})
    assert "1 booked appointment loses what it was booked for" in text_of(shown)
    assert (await apply(admin, shown, CLOSURES, stranded="keep")).status_code == 303
    closed = await directory(world)
    assert [row.reason for each in closed.locations.values() for row in each.closures] == [
        "Christmas Day", "Flood", "Flood",
    ]  # fmt: skip
    page = await admin.get(CLOSURES)
    assert page.text.count("Open again</button>") == 3
    for _ in range(2):
        removed = await send(admin, await admin.get(CLOSURES), CLOSURES, having="remove")
        assert (await apply(admin, removed, CLOSURES)).status_code == 303
    assert (await directory(world)).locations == before.locations
    assert len(await records(world, operation="console.change_closures")) == 3


async def test_chosen_public_holidays_become_closures(world: World, admin: httpx.AsyncClient) -> None:
    """The clock stands at 15 November 2026, and the first location is in the US and closed on Christmas Day."""
    page = await admin.get(HOLIDAYS)
    assert "Thanksgiving Day Thu 26 Nov 2026" in text_of(page)
    assert "Christmas Day Fri 25 Dec 2026 · already closed: Downtown" in text_of(page)
    assert "Veterans Day" not in text_of(page), "that is over"
    assert errors(await send(admin, page, HOLIDAYS)) == {"day": "Choose at least one day."}
    shown = await send(admin, page, HOLIDAYS, day=["2026-11-26", "2026-12-25", "2026-12-24"])
    assert (await apply(admin, shown, HOLIDAYS)).status_code == 303
    locations = (await directory(world)).locations
    closures = [[(f"{row.first}", row.reason) for row in locations[key].closures] for key in (1, 2)]
    thanks, christmas = ("2026-11-26", "Thanksgiving Day"), ("2026-12-25", "Christmas Day")
    assert closures == [[christmas, thanks], [thanks, christmas]], "a day that is no holiday is not closed"
    page = await admin.get(HOLIDAYS, params={"country": "DE", "region": "BY", "year": "2027"})
    assert "Epiphany Wed 6 Jan 2027" in text_of(page)
    assert "Epiphany" not in text_of(await admin.get(HOLIDAYS, params={"country": "DE", "year": "2027"}))
    assert "Unity Day" in text_of(await admin.get(HOLIDAYS, params={"country": "DE", "region": "MA", "year": "2027"}))
    for odd in ({"country": "XX"}, {"country": "../US"}, {"year": "9" * 40}):
        assert (await admin.get(HOLIDAYS, params=odd)).status_code == 200


async def test_a_form_of_a_record_that_nobody_has_is_not_found(admin: httpx.AsyncClient) -> None:
    for action, asked in (
        (PROVIDER, {"id": "99"}),
        (LOCATION, {"id": "x"}),
        (PROCEDURE, {"visit_type": "9" * 30}),
        (PROCEDURE, {"visit_type": "20", "id": "101"}),
    ):
        assert (await admin.get(action, params=asked)).status_code == 404
        assert (await admin.post(action, data={**asked, "version": "1"})).status_code == 404
