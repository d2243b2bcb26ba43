"""A practice that has switched a feature off: its operations, pages, panels and marks are gone, and its data stay."""

import re

import httpx
import pytest

from frontdesk.access.clients.scopes import SCOPES
from frontdesk.console.routes import pages
from frontdesk.feature import features
from frontdesk.practice_file import PracticeFileError, parse
from tests.console.desk import stored
from tests.console.filled_forms import send
from tests.console.signing_in import signed_in
from tests.console.walking import address_of
from tests.features.switching import stored_file, switch
from tests.support.world import World, book, patient_id

ADDRESSES = re.compile(r'(?:href|action)="([^"?#]+)')
NOTE = {"kind": "interpreter", "text": "Speaks Portuguese", "key": "a key", "for_agents": "yes"}


async def test_a_feature_that_is_off_is_nowhere_and_its_data_are_there_when_it_is_on_again(
    world: World, staff: httpx.AsyncClient
) -> None:
    reader = await world.client(scopes=(*SCOPES, "notes:read"))
    booked, ada = await book(reader), await patient_id(reader)
    await staff.post(f"/console/appointments/{booked}/notes", data={**NOTE, "about": "patient"})
    world.clock.advance(hours=29)
    await world.renew(reader)
    staff = await signed_in(world)
    assert "Speaks Portuguese" in (await staff.get("/console/arrivals")).text

    await switch(world, {"notes": {"enabled": False}})
    for page in (f"/console/appointments/{booked}", f"/console/patients/{ada}", "/console/arrivals"):
        html = (await staff.get(page)).text
        assert "Speaks Portuguese" not in html
        assert "/notes" not in html
    refused = await staff.post(f"/console/patients/{ada}/notes", data={**NOTE, "key": "another"})
    assert refused.status_code == 404
    answer = await reader.get(f"/api/patients/{ada}/notes")
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden_scope")
    assert "/patients/{patientId}/notes" not in (await reader.get("/openapi/v1.json")).json()["paths"]
    assert (await reader.get(f"/api/patients/{ada}")).status_code == 200
    assert len(await stored(world, "SELECT FROM desk_note WHERE practice_id = $1")) == 1

    await switch(world, {})
    assert "Speaks Portuguese" in (await staff.get(f"/console/patients/{ada}")).text
    assert (await reader.get(f"/api/patients/{ada}/notes")).json()["items"][0]["text"] == "Speaks Portuguese"


async def test_what_is_off_has_no_page_and_nothing_leads_to_one(world: World, admin: httpx.AsyncClient) -> None:
    agent = await world.client()
    booked, ada = await book(agent), await patient_id(agent)
    await switch(world, {feature.name: {"enabled": False} for feature in features()})
    off = [page for feature in features() for page in feature.parts.pages]
    for page in off:
        assert (await admin.request(page.method, address_of(page))).status_code == 404, page.path
    shown = [address_of(page) for page in pages() if page.method == "GET" and "{" not in page.path and page not in off]
    leading = re.compile("|".join(re.sub(r"\{\w+\}", "[^/]+", f"/console{page.path}") for page in off))
    for address in (*shown, f"/console/appointments/{booked}", f"/console/patients/{ada}"):
        if not address.startswith("/console/live"):
            html = (await admin.get(address)).text
            assert [each for each in ADDRESSES.findall(html) if leading.fullmatch(each)] == [], address


async def test_admins_switch_a_feature_off_and_on_in_the_form_of_the_practice(
    world: World, admin: httpx.AsyncClient
) -> None:
    rules = "/console/practice/rules"
    for change, expected in (([], {"notes": {"enabled": False}}), ("yes", {})):
        shown = await send(admin, await admin.get(rules), rules, features__notes__enabled=change)
        assert "Notes" in shown.text
        assert (await send(admin, shown, rules, step="apply")).status_code == 303
        assert (await stored_file(world)).directory.practice.features == expected


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("{faxes: {enabled: false}}", "practice.features.faxes: unknown key"),
        ("{notes: {enabled: maybe}}", "practice.features.notes.enabled: must be true or false"),
        ("{notes: {enable: false}}", "practice.features.notes.enable: unknown key; the closest known key is enabled"),
        ("{notes: false}", "practice.features.notes: must be a mapping of keys to values"),
    ],
)
def test_what_a_practice_file_cannot_say_of_a_feature_is_named(setting: str, message: str) -> None:
    with pytest.raises(PracticeFileError) as raised:
        parse(f"practice: {{slug: a, name: A, timeZone: UTC, features: {setting}}}")
    assert message in str(raised.value)
