"""Translates the console's texts into the language of the request.

Each text is wrapped as a whole sentence, with placeholders by name:

    from frontdesk.console.language import gettext as _
    from frontdesk.console.language import ngettext
    from frontdesk.texts import N_

    _("The form is larger than %(size)s KiB.", size=64)
    ngettext("%(count)s day", "%(count)s days", count)
    LABELS = {"staff": N_("Staff")}  # marked where it is defined, translated by _() where it is shown

    {{ _("Book an appointment") }}                               in a template: constant texts only
    {% trans name=staff.name %}Signed in as {{ name }}{% endtrans %}
    {{ place.label|translated }}                                 a text that the template receives, escaped as any value

`make catalogue` collects the texts in `translations`, those of a feature in the folder of this name in its own.
"""

import gettext as catalogues
import re
from calendar import day_abbr, day_name, month_abbr, month_name
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Literal

from frontdesk.feature import features
from frontdesk.web.negotiation import MAX_ACCEPT_LENGTH

LANGUAGES = {"en": "English", "de": "Deutsch", "es": "Español"}  # each in its own words
SOURCE = "en"
Width = Literal["wide", "abbreviated"]
_DIGITS = 18  # more than any valid number has

_language: ContextVar[str] = ContextVar("language", default=SOURCE)


def language() -> str:
    """The language of the request, a key of LANGUAGES."""
    return _language.get()


@contextmanager
def use_language(chosen: str) -> Iterator[None]:
    """Within it `language` is `chosen`, or what `set_language` is called with."""
    before = _language.set(chosen)
    try:
        yield
    finally:
        _language.reset(before)


def set_language(chosen: str | None) -> None:
    """Follows the staff member's own choice; None, or a language that is not offered, changes nothing."""
    if chosen in LANGUAGES:
        _language.set(chosen)


def negotiate_language(header: str) -> str:
    """The language that an Accept-Language header likes best of those offered; English if it likes none of them."""
    wanted = []
    for item in header[:MAX_ACCEPT_LENGTH].split(","):
        tag, *parameters = (part.strip().lower() for part in item.split(";"))
        offered = SOURCE if tag == "*" else tag.split("-")[0]
        if offered in LANGUAGES:
            wanted.append((_quality(parameters), offered))
    best, found = max(wanted, key=lambda each: each[0], default=(0.0, SOURCE))
    return found if best > 0 else SOURCE


def _quality(parameters: list[str]) -> float:
    """A value that is not one of RFC 9110 counts as 0."""
    given = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    digits = given.replace(".", "", 1)
    return float(given) if digits.isascii() and digits.isdecimal() and len(given) <= 5 and float(given) <= 1 else 0.0


def gettext(message: str, **values: object) -> str:
    """The text in the language of the request; English if the catalogue does not have it."""
    found = _catalogue(language()).gettext(message) if message else ""
    return found % values if values else found


def pgettext(context: str, message: str, **values: object) -> str:
    """Translates a word that has several translations: `context` says which one is meant."""
    found = _catalogue(language()).pgettext(context, message)
    return found % values if values else found


def ngettext(singular: str, plural: str, count: int, **values: object) -> str:
    """The form of the text for `count`, which is also the placeholder `%(count)s`."""
    return plural_form(singular, plural, count) % {"count": count, **values}


def plural_form(singular: str, plural: str, count: int) -> str:
    """The text for `count`, with its placeholders."""
    return _catalogue(language()).ngettext(singular, plural, count)


def format_number(number: int) -> str:
    """The number with the separator of thousands of the language."""
    if language() == SOURCE:
        return f"{number:,}"
    from babel.numbers import format_decimal

    return format_decimal(number, locale=language())


def parse_number(text: str) -> int | None:
    """A whole number as the language writes it, also with spaces between thousands; None for any other text."""
    separator = re.escape(format_number(10_000)[2])
    if not re.fullmatch(rf"[0-9]{{1,{_DIGITS}}}|[0-9]{{1,3}}([{separator}\s][0-9]{{3}}){{1,{_DIGITS // 3 - 1}}}", text):
        return None
    return int(re.sub("[^0-9]", "", text))


def weekdays(width: Width) -> tuple[str, ...]:
    """The names of the weekdays, from Monday to Sunday."""
    return _names(language(), width)[0]


def months(width: Width) -> tuple[str, ...]:
    """The names of the months, from January to December."""
    return _names(language(), width)[1]


@cache
def _names(chosen: str, width: Width) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if chosen == SOURCE:
        days, named = (day_name, month_name) if width == "wide" else (day_abbr, month_abbr)
        return tuple(days), tuple(named)[1:]
    from babel.dates import get_day_names, get_month_names  # imported when needed, because it is slow

    by_number = get_day_names(width, "stand-alone", chosen), get_month_names(width, "stand-alone", chosen)
    return tuple(by_number[0][day] for day in range(7)), tuple(by_number[1][month] for month in range(1, 13))


@cache
def _catalogue(chosen: str) -> catalogues.NullTranslations:
    if chosen == SOURCE:
        return catalogues.NullTranslations()
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    found = catalogues.NullTranslations()
    for folder in reversed((Path(str(files("frontdesk.console"))), *(feature.folder for feature in features()))):
        path = folder / "translations" / f"{chosen}.po"
        if path.is_file():  # a feature may have no texts
            compiled = BytesIO()
            with path.open("rb") as source:
                write_mo(compiled, read_po(source, locale=chosen))
            compiled.seek(0)
            catalogue = catalogues.GNUTranslations(compiled)
            catalogue.add_fallback(found)
            found = catalogue
    return found
