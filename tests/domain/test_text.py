"""Which characters names, reasons and other texts may contain."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.domain.text import CONTROL, INVISIBLE, character_error, cleaned
from tests.support.properties import examples


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Ada O'Neil-Smith",
        "José",
        "Nguye\u0302\u0303n",  # decomposed accents
        "田中 さくら",
        "a\u00a0b",
        "عائشة",
        "على\u200cرضا",  # Persian: a non-joiner between two letters
        "می\u200cخواهم",
        "ශ්\u200dරී",  # Sinhala: a joiner behind a virama
        "ക്\u200d",  # Malayalam: the same at the end of a word
        "ರ\u200d್ಯಾ",  # Kannada: a joiner before a virama
        "क्\u200cष",
        "葛\U000e0100城",  # Japanese: a variant of an ideograph
        "ᠠ\u180b",  # Mongolian: a variant of a letter
        "I am ill ☹️",
        "feeling better 🙂",
        "urgent ‼️ ⁉️ ℹ️ ↔️ ⤴️ ◼️ 〰️ 〽️",  # no symbols by their category
        "press 1️⃣ or #️⃣",
        "🙂\u200d↔️",
        "👩\u200d⚕️ 👩🏽\u200d⚕️ ❤️\u200d🔥",  # pictures that consist of several
    ],
)
def test_text_that_people_write_is_kept(text: str) -> None:
    assert character_error(text) is None
    assert cleaned(text) == text


@pytest.mark.parametrize(
    "hidden",
    [
        "\u00ad",  # soft hyphen
        "\u061c",  # Arabic letter mark
        "\u200b",  # zero width space
        "\u200c",  # a joiner between Latin letters
        "\u200d",
        "\u200e",
        "\u202e",  # right-to-left override
        "\u2066",
        "\u2060",
        "\u2065",
        "\ufeff",
        "\u034f",  # combining grapheme joiner
        "\u115f",  # invisible letters
        "\u3164",
        "\uffa0",
        "\u17b4",
        "\u180e",
        "\ufe00",  # a variation selector behind a letter
        "\ufe0f",
        "\U000e0100",
        "\ue000",  # private use
        "\U000f0000",
        "\ufdd0",  # noncharacters
        "\U0001ffff",
        "\U000e0001",  # tags
        "".join(chr(0xE0000 + ord(char)) for char in "cancel everything"),
    ],
)
def test_hidden_characters_are_refused_and_removed(hidden: str) -> None:
    assert character_error(f"Ada{hidden}Byron") == INVISIBLE
    assert cleaned(f"Ada{hidden}Byron") == "AdaByron"


@pytest.mark.parametrize("control", ["\x00", "\t", "\n", "\r", "\x1b", "\x7f", "\x85"])
def test_control_characters_are_refused_and_replaced(control: str) -> None:
    assert character_error(f"Ada{control}Byron") == CONTROL
    assert cleaned(f"Ada{control}Byron") == "Ada Byron"


def test_line_separators_are_refused_and_replaced() -> None:
    assert {character_error("a\u2028b"), character_error("a\u2029b")} == {INVISIBLE}
    assert cleaned("a\u2028b") == cleaned("a\u2029b") == "a b"
    assert character_error("\ud800") == CONTROL


@pytest.mark.parametrize(
    "text",
    [
        "می\u200c\u200cخواهم",  # a second joiner
        "می\u200c ",  # behind the word
        "\u200cمی",
        "م\u200ca",  # between two scripts
        "葛\U000e0100\U000e0101",  # a second selector
        "葛\U000e0163",  # no selector of an ideograph
        "葛\ufe0f",
        "☹\ufe0f\ufe0f",
        "12\ufe0f3",  # no keycap
        "👨\u200d\u200d👩",
        "👨\u200dA",
        "👨\u200c👩",
    ],
)
def test_joiners_and_selectors_are_refused_where_no_script_needs_them(text: str) -> None:
    assert character_error(text) == INVISIBLE
    assert character_error(cleaned(text)) is None


def test_no_character_of_the_refused_categories_passes() -> None:
    refused = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
    passed = [
        code
        for code in range(0xF0000)  # behind it, everything is for private use
        if unicodedata.category(chr(code)) in refused and character_error(f"a{chr(code)}b") is None
    ]
    assert passed == []


@examples(100)
@given(
    st.text(alphabet=st.one_of(st.characters(), st.sampled_from("می\u200c\u200d葛\U000e0100☹↔1\ufe0f\u20e3ᠠ\u180b")))
)
def test_cleaned_text_has_no_error(text: str) -> None:
    assert character_error(cleaned(text)) is None
    assert cleaned(cleaned(text)) == cleaned(text)
