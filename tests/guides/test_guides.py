"""The guides, pasted: whatever they show must work. And as pages: complete, linked, and in need of nothing else."""

import json
import re
from collections.abc import Iterator
from importlib.resources import files

import pytest

from frontdesk.doors.docs.guide_pages import GUIDES, title_of
from frontdesk.practice_file import parse
from tests.crash.harness import Clinic
from tests.doors.test_pages import POLICY, Page, page
from tests.guides.newcomer import needs_curl, paste, script_of, snippets, start_demo
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

world = world_of_a_module

# What a page must have printed when everything on it was pasted.
SHOWN = {
    "quick-start": [r'"capabilities":\[', r'"available":true', r'"status":"booked"'],
    "booking-over-rest": [
        r'"available":true',
        r"'providerName': 'Dr. Robert Chen'",
        r"^Booked: apt_[0-9A-Za-z]{22}$",
        r"^cancelled$",
        r"^Booked with the client: apt_[0-9A-Za-z]{22}$",
    ],
    "booking-over-mcp": [
        r"^Read back: \w+day 20",
        r"^Booked: apt_[0-9A-Za-z]{22}$",
        r"^Agent:  You are booked. Goodbye!$",
        r"^Agent:  Then I leave everything as it is. Goodbye!$",
        r"^data: .*Harborside Medical Group",
    ],
    "confirmations": [r'"code":"confirmation_required"', r"^one appointment, two identical responses$"],
    "consent-receipts": [
        r"^Wrote the receipt to receipt.jws\.$",
        r"^Receipt +valid$",
        r"^valid: book_appointment .+ reported by the client$",
    ],
    "errors-and-retries": [
        r"visitTypeId, procedureId, from, to, limit",
        r"^waiting for 1 s$",
        r"^Harborside Medical Group$",
        r"^unauthorized\nforbidden_scope\nnot_found\nslot_unavailable\nrate_limited\ninternal\ncapability_not_supported$",
        r"^confirmation_incomplete\nbooked\napt_[0-9A-Za-z]{22}$",
    ],
    "time-zones": [
        r"-0[45]:00\nAmerica/New_York\n.*-0[56]:00\nAmerica/Chicago$",
        r"^Tuesday, November 17, at 09:00$",
        r"^Binding$",
    ],
    "going-to-production": [r"Harbor Family Medicine", r"Voice agent", r"^migrations +ok"],
    "connecting-a-fhir-system": [r"Harbor Family Medicine", r"fhir"],
    "operating": [r"^audit +ok", r"whole$", r"^frontdesk_database_up 1\.0$", r"token-signing"],
}
every_guide = pytest.mark.parametrize("guide", GUIDES)
ALWAYS_PASTED = {"quick-start", "confirmations"}  # the others take half a minute
every_page = pytest.mark.parametrize("path", ["/docs/guides", *(f"/docs/guides/{guide}" for guide in GUIDES)])


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    clinic = start_demo(tmp_path_factory.mktemp("reader"))
    try:
        paste(clinic, script_of("quick-start"))  # the other guides use the file that it writes
        yield clinic
    finally:
        clinic.stop()


@needs_curl
@pytest.mark.parametrize(
    "guide", [pytest.param(each, marks=() if each in ALWAYS_PASTED else pytest.mark.heavy) for each in GUIDES]
)
def test_everything_a_guide_shows_works_when_pasted(demo: Clinic, guide: str) -> None:
    printed = paste(demo, script_of(guide))
    for expected in SHOWN[guide]:
        assert re.search(expected, printed, re.MULTILINE), f"{expected}\n{printed}"


@needs_curl
@pytest.mark.parametrize("line", ["false", ". ./desk.sh; X=$(api $URL/api/nothing | pick \"['items']\")"])
def test_a_line_that_fails_does_not_pass_unnoticed(demo: Clinic, line: str) -> None:
    with pytest.raises(AssertionError):
        paste(demo, f"{line}\necho and on it goes")


@every_guide
def test_a_snippet_is_run_or_says_why_not(guide: str) -> None:
    found = snippets(guide)
    assert any(each.reason is None and each.language in ("bash", "python") for each in found)
    for each in found:
        assert each.language in ("bash", "python", "json", "yaml", "sql")  # sql: tests/nodes/test_logins.py runs it
        assert each.reason is None or each.reason.strip()
        if each.language == "json":
            json.loads(each.text)
        elif each.language == "yaml":
            assert parse(each.text).directory.providers


def test_every_file_of_the_guides_is_a_page() -> None:
    written = {file.name for file in (files("frontdesk.doors.docs") / "guides").iterdir()}
    assert written == {f"{guide}.md" for guide in GUIDES}


@every_page
async def test_a_guide_needs_nothing_but_this_service(world: World, path: str) -> None:
    answer = await world.anonymous().get(path)
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"] == POLICY
    found = Page(answer.text)
    assert found.count("style") == 0
    assert not found.attributes("style")
    assert found.count("h1") == found.count("main") == 1
    assert len(found.attributes("id")) == len(set(found.attributes("id")))
    for address in found.attributes("src") + found.attributes("href"):
        assert re.match(r"[/#](?!/)", address), address


@every_page
async def test_every_link_of_a_guide_leads_somewhere(world: World, path: str) -> None:
    found = await page(world, path)
    ids = {path: set(found.attributes("id"))}
    for address in {*found.attributes("href"), *found.attributes("src")}:
        place, _, anchor = address.partition("#")
        place = place or path
        if place not in ids:
            answer = await world.anonymous().get(place)
            assert answer.status_code == 200, address
            is_page = answer.headers["content-type"].startswith("text/html")
            ids[place] = set(Page(answer.text).attributes("id")) if is_page else set()
        assert not anchor or anchor in ids[place], address


async def test_guides_are_found_from_the_reference(world: World) -> None:
    assert "/docs/guides" in (await page(world, "/docs")).attributes("href")
    index = await page(world, "/docs/guides")
    assert {f"/docs/guides/{guide}" for guide in GUIDES} <= set(index.attributes("href"))
    assert all(title_of(guide) in index.text for guide in GUIDES)


async def test_a_guide_shows_the_address_of_this_service(world: World) -> None:
    shown = (await page(world, "/docs/guides/quick-start")).text
    assert f"URL={world.service.settings.public_url}" in shown


async def test_confirmations_are_explained_with_a_picture(world: World) -> None:
    found = await page(world, "/docs/guides/confirmations")
    pictures = [attributes for tag, attributes in found.tags if tag == "img" and attributes["alt"]]
    assert [bool(re.match("/docs/assets/confirmation", each["src"])) for each in pictures] == [True]
    answer = await world.anonymous().get(pictures[0]["src"])
    assert answer.headers["content-type"] == "image/svg+xml"
    assert "nothing has changed" in answer.text


async def test_a_guide_that_nobody_wrote_is_not_found(world: World) -> None:
    for name in ("nothing", "..%2Fframe", "quick-start.md"):
        answer = await world.anonymous().get(f"/docs/guides/{name}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
