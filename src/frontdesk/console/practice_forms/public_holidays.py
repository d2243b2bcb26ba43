"""Public holidays of a country and its regions, from the library `holidays`."""

import unicodedata
from datetime import date
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from frontdesk.console.language import SOURCE

if TYPE_CHECKING:
    from holidays import HolidayBase

Choices = list[tuple[str, str]]  # code and name


def load() -> None:
    """Imports the library, which takes a good part of a second: call it in a thread."""
    countries()


@cache
def countries() -> Choices:
    from holidays.registry import COUNTRIES

    found = ((codes[1], module.replace("_", " ").title()) for module, codes in COUNTRIES.items())
    return sorted(found, key=lambda each: each[1])


@cache
def countries_in(language: str) -> Choices:
    """The countries, with their names in a language."""
    if language == SOURCE:
        return countries()
    from babel import Locale

    names = Locale(language).territories
    found = ((code, names.get(code, name)) for code, name in countries())
    return sorted(found, key=lambda each: unicodedata.normalize("NFKD", each[1]))


def regions(country: str) -> Choices:
    """The regions of a country that `countries` lists."""
    kind = _kind(country)
    names = {code: name for name, code in getattr(kind, "subdivisions_aliases", {}).items()}
    return sorted(((code, names.get(code, code)) for code in kind.subdivisions), key=lambda each: each[1])


@lru_cache(maxsize=100)
def public_holidays(country: str, region: str, year: int, language: str) -> list[tuple[date, str]]:
    """The public holidays by date, with names in the language, else in English, where the library has them."""
    from holidays import country_holidays

    known = _kind(country).supported_languages
    named = next((each for wanted in (language, SOURCE) for each in known if each.startswith(wanted)), None)
    found = country_holidays(country, subdiv=region or None, years=year, language=named)
    return sorted((day, name) for day, name in found.items() if day.year == year)


@cache
def _kind(country: str) -> "type[HolidayBase]":
    from holidays import country_holidays

    return type(country_holidays(country))
