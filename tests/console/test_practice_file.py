"""The practice file at the console: every error by its path, what would change before it does, nothing by halves."""

import asyncio
import html
import json
import re

import httpx
import pytest
import yaml

from frontdesk.practice_file import parse
from frontdesk.store.practices import export_practice
from tests.console.admin_pages import EVIL, check_harmless, practice_id, text_of, value_of
from tests.console.signing_in import TEST_STAFF, audited, signed_in
from tests.fhir.practice import file_text
from tests.support.world import PRACTICE, World, book, stored_directory

HARBOR = PRACTICE.replace("SLUG", "harbor")
WITHOUT_PATIENTS = HARBOR.partition("patients:")[0]


async def preview(browser: httpx.AsyncClient, text: str, **fields: str) -> httpx.Response:
    return await browser.post("/console/practice/preview", data={"text": text, **fields})


async def apply(browser: httpx.AsyncClient, shown: httpx.Response, **fields: str) -> httpx.Response:
    """Presses the button of a preview."""
    assert shown.status_code == 200, shown.text
    found = re.search(r"<textarea[^>]*>(.*?)</textarea>", shown.text, re.DOTALL)
    assert found is not None
    sent = {"text": html.unescape(found.group(1)), "version": value_of(shown, "version"), **fields}
    if 'name="prune"' in shown.text:
        sent["prune"] = "yes"
    return await browser.post("/console/practice/apply", data=sent)


def changes(shown: httpx.Response) -> dict[str, str]:
    """Kind by kind, what the table says."""
    assert shown.status_code == 200, shown.text
    rows = re.findall(
        r'<tr>\s*<th scope="row">(.*?)</th>(.*?)</tr>', shown.text.partition("Before and after")[0], re.DOTALL
    )
    return {kind: text_of(httpx.Response(200, text=cells)) for kind, cells in rows}


def errors(page: httpx.Response) -> list[tuple[str, str]]:
    assert page.status_code == 422, page.text
    found = re.search(r'<ul class="error-list">(.*?)</ul>', page.text, re.DOTALL)
    assert found is not None
    listed = re.findall(r"<li>(.*?)<span>(.*?)</span></li>", found.group(1).replace("<wbr>", ""), re.DOTALL)
    return [(html.unescape(re.sub(r"<[^>]+>", "", path)), html.unescape(message)) for path, message in listed]


async def test_what_is_downloaded_can_be_uploaded_and_changes_nothing(world: World, admin: httpx.AsyncClient) -> None:
    stored = await export_practice(world.database, "harbor", with_patients=False)
    for ending, kind in (("yaml", "application/yaml"), ("json", "application/json")):
        answer = await admin.get(f"/console/practice/file.{ending}")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kind)
        assert answer.headers["content-disposition"] == f'attachment; filename="harbor.{ending}"'
        assert parse(answer.text) == stored
        assert "Lovelace" not in answer.text
        shown = await preview(admin, answer.text)
        assert "Nothing: the practice already matches the file" in shown.text
        assert set(changes(shown).values()) == {"0 0 0 0", "0 0 0 2", "0 0 0 3", "0 0 0 4"}
    json.loads((await admin.get("/console/practice/file.json")).text)
    assert (await admin.get("/console/practice/file.exe")).status_code == 404


async def test_time_that_was_blocked_at_the_desk_is_no_change(world: World, admin: httpx.AsyncClient) -> None:
    practice = await practice_id(world)
    async with world.database.transaction(practice) as connection:
        for table, column, block in (
            ("location", "closures", '{"first": "2026-12-01", "last": "2026-12-01", "reason": "Move", "by": "op_x"}'),
            (
                "provider",
                "time_off",
                '{"starts": "2026-12-01T09:00:00", "ends": "2026-12-01T10:00:00", "reason": null, "by": "op_x"}',
            ),
        ):
            await connection.execute(
                f"UPDATE {table} SET {column} = {column} || $2::jsonb WHERE practice_id = $1", practice, f"[{block}]"
            )
    exported = (await admin.get("/console/practice/file.yaml")).text
    assert "Move" in exported
    for text in (exported, WITHOUT_PATIENTS):
        assert "Nothing: the practice already matches the file" in (await preview(admin, text)).text


async def test_what_changes_is_counted_by_kind_and_nothing_has_changed_yet(
    world: World, admin: httpx.AsyncClient
) -> None:
    before = await stored_directory(world.database, "harbor")
    text = (
        HARBOR.replace("name: Harbor Family Medicine", "name: Harbour Medicine")
        .replace("name: Westside", "name: West Side")
        .replace("durationMinutes: 45", "durationMinutes: 60")
        .replace('phone: "+1 555 010 0199"', 'phone: "+1 555 010 9999"')
        .replace("visitTypes:", "  - {id: 13, name: Dr. New}\nvisitTypes:")
    )
    messages = changes(await preview(admin, text))
    assert messages == {
        "Settings": "0 1 name 0 0",
        "Locations": "0 1 West Side 0 1",
        "Providers": "1 Dr. New 0 0 3",
        "Visit types": "0 0 0 3",
        "Procedures": "0 1 Long follow-up 0 3",
        "Patients": "0 1 0 3",
    }
    assert await stored_directory(world.database, "harbor") == before


async def test_only_with_the_box_ticked_is_anything_removed(world: World, admin: httpx.AsyncClient) -> None:
    text = re.sub(r"  - id: 12\n.*?(?=visitTypes:)", "", WITHOUT_PATIENTS, flags=re.DOTALL)
    assert changes(await preview(admin, text))["Providers"] == "0 0 0 2"
    shown = await preview(admin, text, prune="yes")
    assert changes(shown)["Providers"] == "0 0 1 Dr. Amara Okafor 2"
    assert (await apply(admin, shown)).status_code == 303
    directory = await stored_directory(world.database, "harbor")
    assert directory is not None
    assert not directory.providers[12].active
    back = await preview(admin, WITHOUT_PATIENTS)
    assert changes(back)["Providers"] == "1 Dr. Amara Okafor 0 0 2"


async def test_a_file_that_was_looked_at_is_applied_as_a_whole_and_recorded(
    world: World, admin: httpx.AsyncClient
) -> None:
    shown = await preview(admin, HARBOR.replace("name: Westside", "name: West Side"))
    answer = await apply(admin, shown)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/practice?notice=practice_file_applied")
    directory = await stored_directory(world.database, "harbor")
    assert directory is not None
    assert directory.locations[2].name == "West Side"
    mine = [record for record in await audited(world) if "practice_file" in record[0]]
    assert mine == [("console.import_practice_file", "executed", admin.headers[TEST_STAFF])]


async def test_a_chosen_file_is_read_like_a_pasted_one(world: World, admin: httpx.AsyncClient) -> None:
    for content in (HARBOR.encode(), b"\xef\xbb\xbf" + HARBOR.encode(), HARBOR.replace("\n", "\r\n").encode()):
        shown = await admin.post(
            "/console/practice/preview",
            data={"csrf": admin.headers["X-CSRF-Token"], "text": ""},
            files={"file": ("harbor.yaml", content, "application/yaml")},
        )
        assert "Nothing: the practice already matches the file" in shown.text, shown.text
        assert "María" in html.unescape(shown.text)


async def test_every_error_stands_beside_its_path_and_the_text_stays(world: World, admin: httpx.AsyncClient) -> None:
    before = await stored_directory(world.database, "harbor")
    broken = (
        HARBOR.replace('from: "09:00", to: "12:00"', 'from: "12:00", to: "09:00"', 1)
        .replace("durationMinutes: 30", "durationMinutes: 0")
        .replace("visitTypes:", "visitTypez:")
    )
    page = await preview(admin, broken, prune="yes")
    messages = errors(page)
    assert [path for path, _ in messages] == ["providers[0].hours[0].to", "providers[2].procedures[0]", "visitTypez"]
    assert "The file has 3 errors. Nothing was changed." in text_of(page)
    found = re.search(r"<textarea[^>]*>(.*?)</textarea>", page.text, re.DOTALL)
    assert found is not None
    assert html.unescape(found.group(1)) == broken
    assert "checked" in re.findall(r'<input[^>]*name="prune"[^>]*>', page.text)[0]
    assert await stored_directory(world.database, "harbor") == before
    assert errors(await admin.post("/console/practice/apply", data={"text": broken, "version": "1"})) != []


@pytest.mark.parametrize(
    "text",
    ["", "   ", "{", "- a list", "a: &x 1", "practice: {slug: harbor", "\udcff".encode("utf-8", "replace").decode()],
)
async def test_what_is_no_practice_file_is_told(admin: httpx.AsyncClient, text: str) -> None:
    assert errors(await preview(admin, text))


async def test_bytes_that_are_no_text_and_files_that_are_too_large_are_refused(admin: httpx.AsyncClient) -> None:
    for content, status in ((b"\xff\xfe\x00", 400), (b"x" * 1_200_000, 413)):
        answer = await admin.post(
            "/console/practice/preview", files={"file": ("harbor.yaml", content, "application/yaml")}
        )
        assert answer.status_code == status, answer.text[:500]
        assert "64 KiB" not in answer.text


async def test_another_practices_file_is_refused_without_a_word_about_it(
    world: World, admin: httpx.AsyncClient
) -> None:
    before = await stored_directory(world.database, "other")
    foreign = PRACTICE.replace("SLUG", "other").replace("name: Downtown", "name: Elsewhere")
    for slug in ("other", "nobody"):
        messages = errors(await preview(admin, foreign.replace("slug: other", f"slug: {slug}")))
        assert messages == [("practice.slug", "must be harbor: this is another practice's file")]
    answer = await admin.post("/console/practice/apply", data={"text": foreign, "version": "1"})
    assert answer.status_code == 422
    # A reference to something that only the other practice has is not answered differently.
    lone = "practice: {slug: SLUG, name: n, timeZone: UTC}\nproviders: [{id: 1, name: p, procedures: [777]}]"
    messages = [errors(await preview(admin, lone.replace("SLUG", slug)))[1:] for slug in ("other", "nobody")]
    assert messages[0] == messages[1]
    assert await stored_directory(world.database, "other") == before


async def test_the_scheduling_system_is_not_changed_from_here(world: World, admin: httpx.AsyncClient) -> None:
    """Its settings name secrets of the server: staff who could set them could have those sent anywhere."""
    text = file_text("harbor", "https://evil.example/fhir", auth={"kind": "bearer", "tokenEnv": "HOME"})
    messages = errors(await preview(admin, text))
    assert messages == [("practice.schedulingSystem", "is changed with frontdesk practice import, on the server")]
    answer = await admin.post("/console/practice/apply", data={"text": text, "version": "1"})
    assert answer.status_code == 422
    directory = await stored_directory(world.database, "harbor")
    assert directory is not None
    assert directory.practice.scheduling_system == {"kind": "native"}


async def test_a_practice_that_changed_meanwhile_is_compared_again(world: World, admin: httpx.AsyncClient) -> None:
    shown = await preview(admin, HARBOR.replace("name: Westside", "name: West Side"))
    await world.import_file(HARBOR.replace("name: Downtown", "name: Uptown"))
    answer = await apply(admin, shown)
    assert answer.status_code == 409
    assert "The practice was changed in the meantime" in text_of(answer)
    directory = await stored_directory(world.database, "harbor")
    assert directory is not None
    assert (directory.locations[1].name, directory.locations[2].name) == ("Uptown", "Westside")


async def test_two_who_apply_at_once_do_not_overwrite_each_other(world: World) -> None:
    browsers = [await signed_in(world, role="admin", name=name) for name in ("Ana", "Ben")]
    shown = [
        await preview(browser, HARBOR.replace("name: Westside", f"name: {name}"))
        for browser, name in zip(browsers, ("West", "East"), strict=True)
    ]
    answers = await asyncio.gather(*(apply(*pair) for pair in zip(browsers, shown, strict=True)))
    assert sorted(answer.status_code for answer in answers) == [303, 409]


async def test_texts_of_a_file_stay_text(world: World, admin: httpx.AsyncClient) -> None:
    document = yaml.safe_load(WITHOUT_PATIENTS)
    document["practice"]["name"] = EVIL
    document["locations"][1]["name"] = EVIL
    document["providers"][0]["name"] = EVIL
    document["visitTypes"][0]["name"] = EVIL
    document["visitTypes"][0]["procedures"][0]["name"] = EVIL
    shown = await preview(admin, json.dumps(document, default=str))
    check_harmless(shown)
    assert (await apply(admin, shown)).status_code == 303
    for path in ("/practice", "/setup", "/clients", "/practice/system"):
        check_harmless(await admin.get(f"/console{path}"))
    check_harmless(await preview(admin, f"{EVIL}: 1"))
    check_harmless(await preview(admin, f"</textarea>{EVIL}"))


async def test_staff_reach_nothing_of_it_whatever_a_page_forgets(world: World, staff: httpx.AsyncClient) -> None:
    for path in ("", "/file.yaml", "/file.json"):
        assert (await staff.get(f"/console/practice{path}")).status_code == 403
    assert (await preview(staff, HARBOR)).status_code == 403
    assert (await staff.post("/console/practice/apply", data={"text": HARBOR, "version": "1"})).status_code == 403


async def test_appointments_that_lose_their_provider_are_shown_and_decided_upon(
    world: World, admin: httpx.AsyncClient
) -> None:
    booked = await book(await world.client(), providerId=12)
    text = re.sub(r"  - id: 12\n.*?(?=visitTypes:)", "", WITHOUT_PATIENTS, flags=re.DOTALL)
    assert booked not in (await preview(admin, text)).text
    shown = await preview(admin, text, prune="yes")
    assert "1 booked appointment loses what it was booked for" in text_of(shown)
    assert f"/console/appointments/{booked}" in shown.text
    for choice in ({}, {"stranded": "refuse"}, {"stranded": "drop"}):
        answer = await apply(admin, shown, **choice)
        assert answer.status_code == 409
        assert "First choose what becomes of the appointments" in text_of(answer)
    directory = await stored_directory(world.database, "harbor")
    assert directory is not None
    assert directory.providers[12].active
    assert (await apply(admin, shown, stranded="cancel")).status_code == 303
    async with world.database.transaction(await practice_id(world)) as connection:
        status = await connection.fetchval("SELECT status FROM appointment WHERE appointment_id = $1", booked)
        actor = await connection.fetchval("SELECT actor FROM audit_record WHERE operation = 'cancel_appointment'")
    assert (status, actor) == ("cancelled", admin.headers[TEST_STAFF])
