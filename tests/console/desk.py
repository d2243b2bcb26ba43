"""The pages of the front desk as a test reads them, and what they left behind."""

import re
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from typing import Any

import httpx

from frontdesk.engine.arguments import Arguments
from frontdesk.engine.execute import Call
from frontdesk.features.holds.operations import HOLD_SLOT
from tests.support.world import MONDAY, World, patient_id, slots

NINE = {"provider": "10", "location": "1", "date": "2026-11-16", "time": "09:00"}
HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""

    @property
    def classes(self) -> set[str]:
        return set(self.attributes.get("class", "").split())


class Document(HTMLParser):
    """A page as a list of elements, each with all the text inside it."""

    _VOID = frozenset(("br", "hr", "img", "input", "link", "meta"))

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in self._VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def having(self, name: str, value: str | None = None) -> list[Element]:
        return [
            each
            for each in self.elements
            if name in each.attributes and (value is None or each.attributes[name] == value)
        ]

    def of_class(self, name: str) -> list[Element]:
        return [each for each in self.elements if name in each.classes]

    def tagged(self, tag: str) -> list[Element]:
        return [each for each in self.elements if each.tag == tag]


def words(text: str) -> str:
    return " ".join(text.split())


def entries(html: str) -> dict[str, Element]:
    """The appointments of a calendar by id: the list item with everything it says."""
    document = Document(html)
    ids = [each.attributes["data-entry"] for each in document.having("data-entry")]
    return dict(zip(ids, document.of_class("entry"), strict=True))


def labels(html: str) -> dict[str, str]:
    """What a screen reader says of each appointment of a calendar, by id."""
    found = Document(html).having("data-entry")
    return {each.attributes["data-entry"]: each.attributes["aria-label"] for each in found}


async def calendar(browser: httpx.AsyncClient, path: str = "/calendar", **query: Any) -> str:
    answer = await browser.get(f"/console{path}", params={"date": MONDAY.isoformat(), **query})
    assert answer.status_code == 200, answer.text
    return answer.text


async def hold_first_slot(world: World) -> None:
    """An integration holds the first open slot."""
    client = await world.client(grant="integration")
    [slot, *_] = await slots(client)
    token = client.headers["Authorization"].removeprefix("Bearer ")
    await world.service.engine.execute(Call(HOLD_SLOT, token, lambda: Arguments({"slotId": slot["id"]}), "0" * 32))


def key_in(html: str, action: str) -> str:
    """The idempotency key of the form that posts there."""
    form = html.split(f'action="{action}"', 1)[1].split("</form>", 1)[0]
    return dict(HIDDEN.findall(form))["key"]


def form_in(html: str, action: str = "/console/override") -> dict[str, list[str]]:
    """The hidden fields of the form that posts there."""
    found: dict[str, list[str]] = {}
    for name, value in HIDDEN.findall(html.split(f'action="{action}"', 1)[1].split("</form>", 1)[0]):
        found.setdefault(name, []).append(unescape(value))
    return found


async def overbooked(
    staff: httpx.AsyncClient, agent: httpx.AsyncClient, first: str = "Ada", reason: str = "In pain"
) -> str:
    """Books somebody at nine against the rules. Returns the appointment's id."""
    given = {**NINE, "patient": await patient_id(agent, first), "visit": "21-101", "reason": reason}
    shown = await staff.post("/console/override", data=given)
    assert shown.status_code == 200, shown.text
    booked = await staff.post("/console/override", data=form_in(shown.text))
    assert booked.status_code == 303, booked.text
    return str(re.search("apt_[0-9A-Za-z]+", booked.headers["Location"])[0])  # type: ignore[index]


async def records(world: World, practice: str = "harbor", **wanted: str) -> list[dict[str, Any]]:
    """The audit trail of a practice, the oldest first; only what has these values."""
    practice_id = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = $1", practice)
    async with world.database.transaction(practice_id) as connection:
        rows = await connection.fetch(
            "SELECT * FROM audit_record WHERE practice_id = $1 ORDER BY record_id", practice_id
        )
    return [dict(row) for row in rows if all(row[name] == value for name, value in wanted.items())]


async def stored(world: World, sql: str, *arguments: Any, practice: str = "harbor") -> list[dict[str, Any]]:
    """Rows of a statement whose first parameter is the practice."""
    practice_id = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = $1", practice)
    async with world.database.transaction(practice_id) as connection:
        return [dict(row) for row in await connection.fetch(sql, practice_id, *arguments)]
