"""Patients at the desk: found by little, shown with their visits, put on file and changed; names do no harm."""

import httpx
import pytest

from frontdesk.desk.patients import MAX_SHOWN
from tests.console.desk import Document, key_in, records, stored, words
from tests.console.filled_forms import form_of
from tests.console.signing_in import TEST_STAFF, signed_in
from tests.support.world import World, book, confirmed, patient_id, slots

NASTY = "<script>alert(1)</script>"
PERSON = {"firstName": "Mary", "lastName": "Shelley", "dob": "1997-08-30", "phone": "+1 555 010 0111"}


async def found(browser: httpx.AsyncClient, text: str) -> list[str]:
    answer = await browser.post("/console/patients", data={"search": text})
    assert answer.status_code == 200, answer.text
    return [words(each.text) for each in Document(answer.text).tagged("th") if each.attributes["scope"] == "row"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("love", ["Lovelace, Ada"]),
        ("ADA", ["Lovelace, Ada"]),
        ("ada lovelace", ["Lovelace, Ada"]),
        ("lovelace ada", ["Lovelace, Ada"]),
        ("Lovelace, A", ["Lovelace, Ada"]),
        ("nunez", ["Núñez-O'Brien, José"]),
        ("jose nunez o'b", ["Núñez-O'Brien, José"]),
        ("a", ["Lovelace, Ada", "Turing, Alan"]),
        ("0142", ["Hopper, Grace"]),
        ("(555) 010-0142", ["Hopper, Grace"]),
        ("+1 555 010 0142", ["Hopper, Grace"]),
        ("0044 1 555 010 0142", ["Hopper, Grace"]),
        ("1990-06-23", ["Turing, Alan"]),
        ("6/23/1990", ["Turing, Alan"]),
        ("al 1990-06-23", ["Turing, Alan"]),
        ("tur 0123", ["Turing, Alan"]),
        ("ada 0142", []),
        ("ada 1990-06-23", []),
        ("ovelace", []),
        ("010", []),
    ],
)
async def test_a_patient_is_found_by_beginnings_of_names_ends_of_numbers_and_birth_dates(
    staff: httpx.AsyncClient, text: str, names: list[str]
) -> None:
    assert await found(staff, text) == names


async def test_a_search_is_recorded_with_whom_it_found(world: World, staff: httpx.AsyncClient) -> None:
    await found(staff, "love")
    await found(staff, "nobody")
    hit, miss = await records(world, operation="console.search_patients")
    assert hit["actor"] == staff.headers[TEST_STAFF]
    assert len(hit["subject_ids"]) == 1
    assert miss["subject_ids"] == []


async def test_a_search_shows_a_bounded_number_and_says_that_there_are_more(
    world: World, staff: httpx.AsyncClient
) -> None:
    await stored(
        world,
        """INSERT INTO patient (practice_id, patient_id, number, first_name, last_name, name_key, dob, phone,
               phone_digits, seen, created_at, updated_at)
           SELECT $1, 'pat_' || lpad(n::text, 22, '0'), 1000 + n, 'Sam', 'Smith', 'sam|smith', '1990-01-01',
               '5550000' || n, '5550000' || n, false, now(), now() FROM generate_series(1, 400) n RETURNING 1""",
    )
    answer = await staff.post("/console/patients", data={"search": "smi"})
    rows = [each for each in Document(answer.text).tagged("th") if each.attributes["scope"] == "row"]
    assert len(rows) == MAX_SHOWN
    assert f"{MAX_SHOWN} patients, and more: enter more to narrow it down</p>" in answer.text


@pytest.mark.parametrize("text", ["", "   ", "!?", "x" * 201])
async def test_a_search_that_says_nothing_is_refused_with_its_text_kept(staff: httpx.AsyncClient, text: str) -> None:
    answer = await staff.post("/console/patients", data={"search": text})
    assert answer.status_code == 422
    assert 'class="error"' in answer.text


async def test_patients_are_found_by_a_date_of_birth_in_either_order(staff: httpx.AsyncClient) -> None:
    """Ada Lovelace was born on 10 December, Grace Hopper on 9 December 1986."""
    assert await found(staff, "12/10/1985") == await found(staff, "10/12/1985") == await found(staff, "10.12.1985")
    assert len(await found(staff, "12/10/1985")) == 1


async def test_a_patient_is_found_by_number(staff: httpx.AsyncClient) -> None:
    assert await found(staff, "#1") == await found(staff, "1")
    assert len(await found(staff, "1")) == 1


async def test_a_search_finds_nobody_of_another_practice(world: World) -> None:
    await stored(
        world, "UPDATE patient SET first_name = 'Zed', name_key = 'zed|zed' WHERE practice_id = $1 RETURNING 1"
    )
    assert await found(await signed_in(world, practice="other"), "zed") == []


async def test_a_patients_page_lists_what_lies_ahead_and_behind(world: World) -> None:
    agent = await world.client()
    await book(agent)
    booked = await book(agent, **{"from": "2026-11-20", "to": "2026-11-20"})
    world.clock.advance(days=2)
    staff = await signed_in(world)
    await world.renew(agent)
    html = (await staff.get(f"/console/patients/{await patient_id(agent)}")).text
    ahead, behind = html.split('id="upcoming"')[1].split('id="past"')
    assert "Fri 20 Nov 2026, 09:00" in ahead
    assert "Mon 16 Nov 2026, 09:00" in behind
    [look] = await records(world, operation="console.patient")
    assert look["subject_ids"] == [await patient_id(agent)]
    await confirmed(agent, "POST", f"/api/appointments/{booked}/cancel", {})
    html = (await staff.get(f"/console/patients/{await patient_id(agent)}")).text
    ahead, behind = html.split('id="upcoming"')[1].split('id="past"')
    assert booked not in ahead, "what is cancelled does not come"
    assert booked in behind


async def test_a_new_patient_is_put_on_file_once_however_often_the_form_is_sent(
    world: World, staff: httpx.AsyncClient
) -> None:
    form = {
        **PERSON,
        "email": "",
        "key": key_in((await staff.get("/console/patients/new")).text, "/console/patients/new"),
    }
    first = await staff.post("/console/patients/new", data=form)
    assert first.status_code == 303, first.text
    assert (await staff.post("/console/patients/new", data=form)).headers["Location"] == first.headers["Location"]
    assert len(await stored(world, "SELECT 1 FROM patient WHERE practice_id = $1 AND last_name = 'Shelley'")) == 1
    [made] = await records(world, operation="create_patient", outcome="executed")
    assert made["actor"] == staff.headers[TEST_STAFF]


async def test_somebody_on_file_already_is_told_beside_the_form(staff: httpx.AsyncClient) -> None:
    ada = {"firstName": "Ada", "lastName": "Lovelace", "dob": "1985-12-10", "phone": "+1 555 010 0199", "key": "k"}
    answer = await staff.post("/console/patients/new", data=ada)
    assert answer.status_code == 409
    assert "already on file" in answer.text
    assert 'value="Lovelace"' in answer.text


async def test_every_error_stands_beside_its_field_and_what_was_typed_stays(staff: httpx.AsyncClient) -> None:
    given = {"firstName": "Mary", "lastName": "", "dob": "2999-01-01", "phone": "12", "email": "nowhere", "key": "k"}
    answer = await staff.post("/console/patients/new", data=given)
    assert answer.status_code in (400, 422)
    document = Document(answer.text)
    for name in ("lastName", "dob", "phone", "email"):
        assert document.having("id", f"{name}-error"), name
        assert document.having("id", name)[0].attributes["aria-invalid"] == "true"
    assert not document.having("id", "firstName-error")
    assert document.having("id", "phone")[0].attributes["value"] == "12"


def untouched(page: httpx.Response, path: str) -> dict[str, str]:
    """What the browser sends if nothing is typed."""
    return {name: value for name, [value] in form_of(page, path).items()}


async def test_a_form_that_was_opened_before_does_not_revert_what_others_have_changed(
    world: World, staff: httpx.AsyncClient
) -> None:
    integration = await world.client(grant="integration")
    grace = await patient_id(integration, "Grace")
    path = f"/console/patients/{grace}/edit"
    form = untouched(await staff.get(path), path)
    phone = {"phone": "+1 555 010 8888"}
    assert (await integration.patch(f"/api/patients/{grace}", json=phone)).status_code == 200
    saved = await staff.post(path, data={**form, "email": "hopper@example.com"})
    assert saved.headers["Location"].endswith("?notice=patient_changed")
    now = (await integration.get(f"/api/patients/{grace}")).json()
    assert (now["phone"], now["email"]) == ("+1 555 010 8888", "hopper@example.com")

    both = await staff.post(path, data={**form, "phone": "+1 555 010 9999", "key": "again"})
    assert (both.status_code, "Somebody else has changed the same field" in both.text) == (409, True)
    assert (await integration.get(f"/api/patients/{grace}")).json()["phone"] == "+1 555 010 8888"
    shown = untouched(both, path)
    assert (shown["phone"], shown["email"]) == ("+1 555 010 9999", "hopper@example.com")
    assert (await staff.post(path, data={**shown, "key": "and again"})).status_code == 303
    assert (await integration.get(f"/api/patients/{grace}")).json()["phone"] == "+1 555 010 9999"


async def test_only_what_was_changed_is_written(world: World, staff: httpx.AsyncClient) -> None:
    grace = await patient_id(await world.client(), "Grace")
    path = f"/console/patients/{grace}/edit"
    form = untouched(await staff.get(path), path)
    assert form["email"] == "grace@example.com"
    same = await staff.post(path, data={**form, "key": "a"})
    assert same.headers["Location"].endswith("?notice=nothing_changed")
    assert not await records(world, operation="update_patient")
    changed = await staff.post(path, data={**form, "phone": "+1 555 010 7777", "email": "", "key": "b"})
    assert changed.headers["Location"].endswith("?notice=patient_changed")
    [row] = await stored(world, "SELECT * FROM patient WHERE practice_id = $1 AND patient_id = $2", grace)
    assert (row["phone"], row["email"], row["last_name"]) == ("+1 555 010 7777", None, "Hopper")
    hidden = await staff.post(path, data={**form, "lastName": "Hop\u202eper", "key": "c"})
    assert (hidden.status_code, "invisible" in hidden.text) == (422, True)


async def test_a_patient_who_does_not_exist_is_not_found(world: World, staff: httpx.AsyncClient) -> None:
    ours = await patient_id(await world.client())
    stranger = await signed_in(world, practice="other", role="admin")
    for path in ("", "/edit"):
        assert (await staff.get(f"/console/patients/pat_0123456789ABCDEFGHIJKL{path}")).status_code == 404
        assert (await stranger.get(f"/console/patients/{ours}{path}")).status_code == 404
    answer = await stranger.post(f"/console/patients/{ours}/edit", data={**PERSON, "key": "k"})
    assert answer.status_code == 404
    assert (await stranger.get(f"/console/book/{ours}")).status_code == 404


async def test_names_are_text_and_nothing_else_on_every_page(world: World, staff: httpx.AsyncClient) -> None:
    """Stored through the desk's own form, shown wherever a patient is shown."""
    made = await staff.post(
        "/console/patients/new",
        data={**PERSON, "firstName": NASTY, "lastName": "\"'><img src=x onerror=alert(1)>" + "W" * 60, "key": "k"},
    )
    assert made.status_code == 303, made.text
    patient = made.headers["Location"].split("/")[-1].split("?")[0]
    agent = await world.client(grant="integration")
    slot = (await slots(agent, visitTypeId=20, procedureId=100))[0]
    booked = (await agent.post("/api/appointments", json={"patientId": patient, "slotId": slot["id"]})).json()
    appointment = booked["appointmentId"]
    pages = [
        await staff.get("/console/calendar?date=2026-11-16"),
        await staff.get("/console/calendar?date=2026-11-16&view=week"),
        await staff.get("/console/day-sheet?date=2026-11-16"),
        await staff.get(f"/console/appointments/{appointment}"),
        await staff.get(f"/console/appointments/{appointment}/move"),
        await staff.get(f"/console/patients/{patient}"),
        await staff.get(f"/console/patients/{patient}/edit"),
        await staff.get(f"/console/book/{patient}?visit=20-100"),
        await staff.post("/console/patients", data={"search": "script"}),
        await staff.post("/console/book", data={"search": "script"}),
        await staff.post("/console/blocks", data={"who": "provider-10", "from": "2026-11-16", "reason": NASTY}),
        await staff.post("/console/patients", data={"search": f"!{NASTY}" * 10}),
    ]
    for answer in pages:
        assert answer.status_code in (200, 422), answer.text
        tags = {each.tag for each in Document(answer.text).elements}
        assert NASTY not in answer.text
        assert "<img src=x" not in answer.text
        assert all("onerror" not in each.attributes for each in Document(answer.text).elements)
        assert "script" not in tags or all(
            each.attributes.get("src", "").startswith("/console/assets/")
            for each in Document(answer.text).tagged("script")
        )
    assert all("&lt;script&gt;" in answer.text for answer in pages[:-1])


async def test_no_address_names_a_patient(world: World, staff: httpx.AsyncClient) -> None:
    answer = await staff.post("/console/patients", data={"search": "lovelace"})
    for element in Document(answer.text).having("href"):
        assert "lovelace" not in element.attributes["href"].lower()
    assert "Location" not in answer.headers
