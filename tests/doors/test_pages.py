"""The pages people read, and what is answered where no door answers."""

import json
import logging
import re
from html.parser import HTMLParser
from itertools import pairwise

import httpx
import pytest

from frontdesk.domain.errors import CATALOGUE
from frontdesk.doors import pages
from frontdesk.doors.docs.errors_page import RULES
from frontdesk.doors.docs.markup import json_markup, linked, prose, sample
from frontdesk.doors.docs.reference_page import STEPS
from frontdesk.engine import arguments
from frontdesk.logs import JsonLines
from frontdesk.operations import OPERATIONS
from frontdesk.practice_file.schema import generate_schema
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

world = world_of_a_module

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
VOID = {"meta", "link", "img", "input", "br"}
both_pages = pytest.mark.parametrize("path", ["/docs", "/errors.html"])


class Page(HTMLParser):
    """What a page is made of. Refuses tags that are not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def attributes(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.tags if name in attributes]

    def count(self, tag: str) -> int:
        return sum(1 for name, _ in self.tags if name == tag)


async def page(world: World, path: str) -> Page:
    answer = await world.anonymous().get(path)
    assert answer.status_code == 200
    return Page(answer.text)


def check_problem(answer: httpx.Response, status: int, code: str) -> None:
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == code
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-svc-trace-id"])
    assert answer.json()["requestId"] == answer.headers["x-svc-trace-id"]


@both_pages
async def test_a_page_needs_nothing_but_this_service(world: World, path: str) -> None:
    answer = await world.anonymous().get(path)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == POLICY
    found = Page(answer.text)
    assert found.count("style") == 0
    assert not found.attributes("style")
    for tag, attributes in found.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert tag != "script" or attributes["src"].startswith("/docs/assets/")
    for address in found.attributes("src") + found.attributes("href"):
        assert address.startswith(("/", "#"))
        assert not address.startswith("//")


@both_pages
async def test_every_link_of_a_page_leads_somewhere(world: World, path: str) -> None:
    anyone, found = world.anonymous(), await page(world, path)
    ids: dict[str, set[str]] = {path: set(found.attributes("id"))}
    for address in {*found.attributes("href"), *found.attributes("src")}:
        place, _, anchor = address.partition("#")
        place = place or path
        if place not in ids:
            answer = await anyone.get(place)
            assert answer.status_code == 200, address
            is_page = answer.headers["content-type"].startswith("text/html")
            ids[place] = set(Page(answer.text).attributes("id")) if is_page else set()
        assert not anchor or anchor in ids[place], address


@both_pages
async def test_a_page_is_built_for_keyboards_and_screen_readers(world: World, path: str) -> None:
    found = await page(world, path)
    assert dict(found.tags)["html"]["lang"] == "en"
    assert found.count("main") == found.count("h1") == 1
    assert found.count("header") >= 1
    labels = [attributes["aria-label"] for tag, attributes in found.tags if tag == "nav"]
    assert len(set(labels)) == len(labels) == 2
    assert next(attributes["href"] for tag, attributes in found.tags if tag == "a") == "#main"
    assert len(found.attributes("id")) == len(set(found.attributes("id")))
    for named in found.attributes("aria-labelledby"):
        assert named in found.attributes("id")
    for tag, attributes in found.tags:
        assert tag != "img" or "alt" in attributes
    main = [tag for tag, _ in found.tags]
    levels = [int(tag[1]) for tag in main[main.index("main") :] if re.fullmatch("h[1-6]", tag)]
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))


async def test_the_reference_shows_every_operation(world: World) -> None:
    found = await page(world, "/docs")
    assert {operation.name for operation in OPERATIONS} <= set(found.attributes("id"))
    for operation in OPERATIONS:
        assert f"/api{operation.path}" in found.text
        assert operation.title in found.text
        assert operation.description in found.text
        assert operation.scope is None or operation.scope in found.text
    assert found.text.count("Authorization: Bearer $TOKEN") > len(OPERATIONS)
    assert set(found.attributes("href")) >= {
        f"/errors.html#{code}" for code in CATALOGUE if code != "method_not_allowed"
    }


async def test_the_reference_begins_with_the_booking_flow_of_the_specification(world: World) -> None:
    html = (await world.anonymous().get("/docs")).text
    flow = html[html.index('<ol class="steps">') : html.index('id="writes"')]
    assert re.findall('href="#([a-z_]+)"', flow) == [name for name, _, _ in STEPS]
    assert [name for name, _, _ in STEPS] == [
        "match_patient", "list_locations", "list_providers", "list_visit_types", "list_procedures", "search_slots",
        "get_slot", "book_appointment",
    ]  # fmt: skip


async def test_the_commands_shown_can_be_pasted(world: World) -> None:
    html = (await world.anonymous().get("/docs")).text
    assert "curl 'http://test/api/slots?providerId=10&amp;locationId=1&amp;visitTypeId=21" in html
    assert "curl -X PATCH http://test/api/patients/pat_0123456789ABCDEFGHIJKL" in html


async def test_the_errors_page_explains_every_code(world: World) -> None:
    found = await page(world, "/errors.html")
    assert set(CATALOGUE) <= set(found.attributes("id"))
    for kind in CATALOGUE.values():
        for text in (kind.title, kind.meaning, kind.retry, *map(str, kind.statuses)):
            assert text in found.text


async def test_the_errors_page_explains_every_rule(world: World) -> None:
    assert set(RULES) == arguments._RULES | set(arguments._PYDANTIC_RULES.values()) | {"cursor", "declined"}
    found = await page(world, "/errors.html")
    for rule in RULES:
        assert rule in found.text


def test_text_that_looks_like_markup_is_escaped() -> None:
    hostile = "<script>alert('&')</script>"
    for made in (sample(hostile, ""), json_markup({hostile: [hostile]}), linked(hostile), prose(f"`{hostile}`")):
        assert "<script" not in made
        assert "&lt;script&gt;" in made


async def test_the_earlier_form_of_a_problem_type_leads_to_the_page(world: World) -> None:
    anyone = world.anonymous()
    for code in CATALOGUE:
        answer = await anyone.get(f"/api/problems/{code}")
        assert answer.status_code == 302
        assert answer.headers["location"] == f"/errors.html#{code}"


async def test_the_type_of_a_problem_of_an_unknown_code_is_not_found(world: World) -> None:
    anyone = world.anonymous()
    check_problem(await anyone.get("/api/problems/nonsense"), 404, "not_found")
    refused = await anyone.post("/api/problems/validation")
    check_problem(refused, 405, "method_not_allowed")
    assert "GET" in refused.headers["allow"]


async def test_the_root_leads_to_the_reference(world: World) -> None:
    for path in ("/", "/docs/"):
        answer = await world.anonymous().get(path)
        assert (answer.status_code, answer.headers["location"]) == (302, "/docs")


async def test_assets_may_be_kept_for_ever_and_pages_are_asked_for_again(world: World) -> None:
    anyone = world.anonymous()
    for name in pages.ASSETS.names.values():
        asset = await anyone.get(f"/docs/assets/{name}")
        assert asset.status_code == 200
        assert asset.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert asset.headers["x-content-type-options"] == "nosniff"
    first = await anyone.get("/docs")
    assert first.headers["cache-control"] == "public, no-cache"
    assert (await anyone.get("/docs", headers={"If-None-Match": first.headers["etag"]})).status_code == 304
    assert (await anyone.get("/docs", headers={"If-None-Match": 'W/"other"'})).status_code == 200
    assert (await anyone.get("/favicon.ico")).headers["content-type"] == "image/svg+xml"


async def test_pages_are_sent_packed_to_those_who_can_unpack(world: World) -> None:
    anyone = world.anonymous()
    packed = await anyone.get("/docs", headers={"Accept-Encoding": "gzip"})
    plain = await anyone.get("/docs", headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.text == plain.text
    assert "content-encoding" not in plain.headers


async def test_an_unknown_path_is_a_problem_wherever_it_is(world: World) -> None:
    anyone = world.anonymous()
    for path in ("/nope", "/api", "/api/nope", "/docs/nope", "/docs/assets/nope.css", "/oauth", "/openapi", "//", "/é"):
        check_problem(await anyone.get(f"http://test{path}"), 404, "not_found")


async def test_a_wrong_method_is_a_problem_that_names_the_right_ones(world: World) -> None:
    anyone = world.anonymous()
    for method, path, allowed in (
        ("POST", "/docs", {"GET", "HEAD"}),
        ("DELETE", "/openapi/v1.json", {"GET", "HEAD"}),
        ("GET", "/oauth/token", {"POST"}),
        ("PUT", "/healthz", {"GET", "HEAD"}),
        ("DELETE", "/api/locations", {"GET"}),
        ("PUT", "/api/appointments", {"GET", "POST"}),
    ):
        answer = await anyone.request(method, path)
        check_problem(answer, 405, "method_not_allowed")
        assert set(answer.headers["allow"].split(", ")) == allowed


async def test_a_trace_id_of_the_caller_is_kept(world: World) -> None:
    anyone = world.anonymous()
    for path in ("/nope", "/docs", "/openapi/v1.json", "/api/problems/validation", "/"):
        answer = await anyone.get(path, headers={"traceparent": TRACEPARENT})
        assert answer.headers["x-svc-trace-id"] == TRACE_ID, path


async def test_an_unexpected_error_tells_the_caller_nothing_and_the_log_everything(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("Ada Lovelace, 1985-12-10")

    monkeypatch.setattr(pages, "_document", broken)
    with caplog.at_level(logging.ERROR):
        answer = await world.anonymous().get("/docs")
    check_problem(answer, 500, "internal")
    assert "Lovelace" not in answer.text
    assert "RuntimeError" not in answer.text
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    line = json.loads(JsonLines().format(record))
    assert line["requestId"] == answer.json()["requestId"]
    assert line["error"] == "RuntimeError"
    assert any("in broken" in frame for frame in line["trace"])
    assert "Lovelace" not in json.dumps(line)


async def test_the_schema_of_the_practice_file_is_published_for_editors(world: World) -> None:
    answer = await world.anonymous().get("/schemas/practice-file.json")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/schema+json")
    assert answer.json() == generate_schema()
