"""The console in the reader's language."""

import html
import re
from datetime import date

import httpx
import pytest

from frontdesk.console.language import (
    gettext,
    language,
    negotiate_language,
    ngettext,
    parse_number,
    set_language,
    use_language,
)
from frontdesk.console.rendering import _templates
from frontdesk.console.times import TimeFormats
from tests.console.catalogue import FOLDERS, read, template_of
from tests.console.signing_in import browser_at, csrf_in
from tests.support.world import World, book

GERMAN, SPANISH = {"Accept-Language": "de-DE,de;q=0.9,en;q=0.5"}, {"Accept-Language": "es-419"}
PAGES = (
    "account", "arrivals", "audit", "blocks", "calendar?date=2026-11-16", "calendar?view=month", "clients", "patients",
    "practice/rules", "practice/visit-types", "reports", "setup", "staff", "usage",
)  # fmt: skip


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("", "en"),
        ("de", "de"),
        ("de-CH, fr;q=0.9", "de"),
        ("fr, es;q=0.4, de;q=0.8", "de"),
        ("en;q=0.3, es-419;q=0.7, *;q=0.1", "es"),
        ("*, de;q=0.5", "en"),
        ("de;q=0", "en"),
        ("de;q=0, es;q=0.001", "es"),
        ("DE ; Q=1.0", "de"),
        ("es, de", "es"),
        ("de;q=2, es;q=nan, en;q=0.1", "en"),
        ("de;q=-1,,;;q,=;q=1e5", "en"),
        ("deutsch, ../de", "en"),
        ("٣, de;q=٠", "en"),
        ("," * 1000 + "de", "en"),  # its end is not read
    ],
)
def test_the_browser_s_favourite_of_the_offered_languages_is_spoken(header: str, wanted: str) -> None:
    assert negotiate_language(header) == wanted


def test_a_text_that_no_catalogue_has_stays_english() -> None:
    with use_language("de"):
        assert gettext("No catalogue has this, 100 %.") == "No catalogue has this, 100 %."
        assert gettext("No catalogue has %(what)s.", what="this") == "No catalogue has this."
        assert gettext("") == "", "the key of a catalogue's header"
        assert ngettext("%(count)s thing", "%(count)s things", 1) == "1 thing"
        assert ngettext("%(count)s thing", "%(count)s things", 2) == "2 things"


def test_a_language_that_is_not_offered_is_not_spoken() -> None:
    with use_language("en"):
        set_language("../../etc/passwd")
        set_language(None)
        assert language() == "en"
    assert language() == "en"


@pytest.mark.parametrize(
    ("chosen", "text", "number"),
    [
        ("en", "1000", 1000),
        ("en", "1,000", 1000),
        ("en", "12 345\u202f678", 12_345_678),
        ("en", "1.000", None),
        ("en", "1,5", None),
        ("en", "1,0000", None),
        ("en", "1,,000", None),
        ("en", ",000", None),
        ("en", "-1", None),
        ("en", "\u0661", None),
        ("en", "", None),
        ("de", "1.000", 1000),
        ("de", "1,000", None),
        ("es", "1.000", 1000),
    ],
)
def test_whole_numbers_are_read_as_the_language_writes_them(chosen: str, text: str, number: int | None) -> None:
    with use_language(chosen):
        assert parse_number(text) == number


def test_what_a_person_typed_is_escaped_in_every_language() -> None:
    template = _templates(TimeFormats()).from_string(
        """{{ _("Connect %(name)s?", name=name) }}{{ name|translated }}
        {{ _("<strong>%(done)s</strong> of %(all)s done", done=name, all=1) }}"""
    )
    for chosen in ("en", "de", "es"):
        with use_language(chosen):
            written = template.render(name='<img src=x onerror="alert(1)">%(first)s')
        assert "<img" not in written
        assert written.count("&lt;img src=x onerror=&#34;alert(1)&#34;&gt;%(first)s") == 3
        assert "<strong>" in written, "the markup of the text itself is kept"


def test_dates_have_the_names_of_the_language_in_the_order_of_the_practice() -> None:
    day = date(2026, 3, 4)
    with use_language("de"):
        assert TimeFormats().long_day(day) == "Mittwoch, 4. März 2026"
        assert TimeFormats().short_day(day) == "Mi 4. Mär"
        assert TimeFormats(dates="monthFirst").dated(day) == "Mär 4, 2026"
        assert TimeFormats(dates="yearFirst").long_day(day) == "Mittwoch, 2026-03-04"
    with use_language("es"):
        assert TimeFormats().long_day(day) == "miércoles, 4 de marzo de 2026"


async def test_pages_have_no_english_sentence_left(world: World, admin: httpx.AsyncClient) -> None:
    await book(await world.client())
    for headers, chosen, pages in ((GERMAN, "de", PAGES), (SPANISH, "es", PAGES[:4])):
        with use_language(chosen):
            english = [
                text
                for text in (message.id for owner in FOLDERS for message in read(template_of(owner)))
                if isinstance(text, str) and text.count(" ") > 1 and "%" not in text and gettext(text) != text
            ]
        for page in pages:
            answer = await admin.get(f"/console/{page}", headers=headers)
            assert f'<html lang="{chosen}"' in answer.text
            assert "Accept-Language" in answer.headers["vary"]
            shown = html.unescape(answer.text)
            assert [text for text in english if text in shown and _alone(text, shown)] == [], page


def _alone(text: str, shown: str) -> bool:
    """Whether it is there as a whole text, not as a part of another one."""
    return re.search(rf"(?<![\w ]){re.escape(text)}(?! ?\w)", shown) is not None


async def test_the_choice_of_a_staff_member_goes_before_the_browser(admin: httpx.AsyncClient) -> None:
    async def choose(chosen: str) -> str:
        page = await admin.get("/console/account", headers=GERMAN)
        fields = {"csrf": csrf_in(page.text), "language": chosen}
        answer = await admin.post("/console/account/language", data=fields, headers=GERMAN)
        assert answer.status_code == 303
        return (await admin.get("/console/account", headers=GERMAN)).text

    page = await choose("es")
    assert '<html lang="es"' in page
    assert '<option value="es" lang="es" selected>Español</option>' in page
    assert '<html lang="de"' in await choose(""), "as the browser prefers"
    assert '<html lang="en"' in await choose("en")
    assert '<html lang="de"' in await choose("../../etc/passwd"), "what is not offered is no choice"


async def test_a_page_without_a_session_follows_the_browser(world: World) -> None:
    page = await browser_at(world, "203.0.113.9").get("/console/sign-in", headers=GERMAN)
    assert '<html lang="de"' in page.text
    assert "Anmelden" in page.text


async def test_a_part_of_a_page_is_fresh_in_one_language_only(admin: httpx.AsyncClient) -> None:
    for part in ("calendar/grid?date=2026-11-16", "calendar/month?date=2026-11-16", "arrivals/board"):
        english = await admin.get(f"/console/{part}")
        known = {"If-None-Match": english.headers["etag"]}
        assert (await admin.get(f"/console/{part}", headers=known)).status_code == 304, part
        german = await admin.get(f"/console/{part}", headers=known | GERMAN)
        assert german.status_code == 200, part
        assert german.headers["etag"] != english.headers["etag"]
