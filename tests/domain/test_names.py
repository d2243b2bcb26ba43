import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.domain.directory import matches_name
from frontdesk.domain.names import digits, has_letter, words
from frontdesk.domain.patients import name_key, spelling_key
from tests.support.properties import examples


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. José  O’Neil-Smith", ["dr", "jose", "oneil", "smith"]),
        ("", []),
        (" \t\n ", []),
        ("?!&", []),
        ("STRASSE", ["strasse"]),
        ("Straße", ["strasse"]),
        ("İstanbul", ["istanbul"]),
        ("Nguyễn Thị", ["nguyen", "thi"]),
        ("Ångström", ["angstrom"]),
        ("A\u030angstrom", ["angstrom"]),
        ("ﬁne Ｗｉｄｅ", ["fine", "wide"]),
        ("J.R. Ewing", ["jr", "ewing"]),
        ("Room 12b", ["room", "12b"]),
        ("Мария-Луиза", ["мария", "луиза"]),
        ("田中 さくら", ["田中", "さくら"]),
        ("Łukasz Søren Đorđe Guðmundur Þór", ["lukasz", "soren", "dorde", "gudmundur", "thor"]),
        ("Ægir Œuvre ẞ Işık Ħal Ŋgũgĩ Ǿ", ["aegir", "oeuvre", "ss", "isik", "hal", "nggugi", "o"]),
    ],
)
def test_text_is_folded_into_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("one", "another"),
    [
        ("राम", "रीमा"),
        ("राम", "रमा"),
        ("রাম", "রুমা"),
        ("மணி", "மாணி"),
        ("がな", "かな"),
        ("ปู", "ปี"),
        ("ไก่", "ไก้"),
        ("ޢަލީ", "ޢާލީ"),
    ],
)
def test_vowel_signs_tones_and_voicing_are_part_of_a_name(one: str, another: str) -> None:
    assert spelling_key(one, "") != spelling_key(another, "")


@pytest.mark.parametrize(
    ("full", "plain"),
    [
        ("José", "Jose"),
        ("Алёна", "Алена"),
        ("Ιωάννης", "Ιωαννης"),
        ("דָּוִד", "דוד"),
        ("مُحَمَّد", "محمد"),
        ("أحمد", "احمد"),
        ("फ़ातिमा", "फातिमा"),
        ("葛\U000e0100城", "葛城"),
        ("ｶﾞﾅ", "ガナ"),
    ],
)
def test_accents_and_points_that_writers_omit_are_not(full: str, plain: str) -> None:
    assert spelling_key(full, "") == spelling_key(plain, "")


@examples(100)
@given(st.lists(st.sampled_from("राम रीमा ががปู่ دָ José 葛\U000e0100-'") | st.characters()).map("".join))
def test_the_stored_key_is_that_of_the_spelling_without_marks(text: str) -> None:
    letters = "".join(char for char in spelling_key(text, "x") if unicodedata.category(char)[0] != "M")
    assert name_key(text, "x") == letters


@pytest.mark.parametrize("apostrophe", ["'", "’", "‘", "‛", "＇", "´", "`", "′", "ʼ", "ʻ"])
def test_every_spelling_of_an_apostrophe_is_the_same_name(apostrophe: str) -> None:
    assert words(f"O{apostrophe}Neil") == ["oneil"]


@pytest.mark.parametrize("separator", ["-", "‐", "–", "/", ",", ", ", "&", "+", "_", "(", "\u00a0", "\t", " - "])
def test_other_punctuation_parts_words_like_a_space(separator: str) -> None:
    assert words(f"Ear{separator}Nose") == ["ear", "nose"]


@pytest.mark.parametrize("invisible", ["\u00ad", "\u200b", "\u200d", "\u200f", "\ufeff"])
def test_invisible_marks_do_not_part_a_word(invisible: str) -> None:
    assert words(f"Ro{invisible}bert") == ["robert"]


@examples(100)
@given(st.text())
def test_folding_folded_text_changes_nothing(text: str) -> None:
    folded = words(text)
    assert words(" ".join(folded)) == folded


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+1 (555) 010-0199", "15550100199"),
        ("٠١٢ ３４５", "012345"),
        ("ext. ½ ² ①", ""),
        ("", ""),
    ],
)
def test_a_phone_number_is_its_decimal_digits(text: str, expected: str) -> None:
    assert digits(text) == expected


@pytest.mark.parametrize(
    "wanted",
    [
        "Robert Chen",
        "chen",
        "CHEN, ROBERT",
        "rob ch",
        "Dr Chen",
        "Doctor Chen",
        "dr. chen",
        "Bob",
        "bob chen",
        "Róbert",
    ],
)
def test_a_provider_is_found_by_the_starts_of_name_or_alias_words(wanted: str) -> None:
    assert matches_name(wanted, "Dr. Robert Chen", ["Bob Chen"])


def test_a_provider_is_not_found_by_another_name_with_the_same_letters() -> None:
    assert matches_name("रीमा", "Dr. रीमा शर्मा", [])
    assert not matches_name("राम", "Dr. रीमा शर्मा", [])


@pytest.mark.parametrize("wanted", ["Roberts", "hen", "Robert Smith", "Bob Robert", "drchen", "Drew"])
def test_a_word_that_starts_no_word_of_one_name_or_alias_finds_nobody(wanted: str) -> None:
    assert not matches_name(wanted, "Dr. Robert Chen", ["Bob Chen"])


@pytest.mark.parametrize("wanted", ["followup", "follow up", "follow-up", "Follow–Up", "fol u", "up", "FOLLOW.UP"])
def test_punctuation_inside_a_word_counts_as_nothing_and_as_a_space(wanted: str) -> None:
    assert matches_name(wanted, "Long Follow-up", [])


@pytest.mark.parametrize("name", ["O'Brien", "O’Brien", "O´Brien", "O-Brien"])
@pytest.mark.parametrize("wanted", ["o'brien", "o brien", "obrien", "O.Brien"])
def test_a_name_is_found_however_its_punctuation_is_typed(name: str, wanted: str) -> None:
    assert matches_name(wanted, f"Dr. Ann {name}", [])
    assert matches_name(f"{wanted}-smith", f"{name} Smith", [])


def test_typed_punctuation_finds_a_name_without_it() -> None:
    assert matches_name("o'brien", "Ann Obrien", [])
    assert matches_name("o'brien", "Ann O Brien", [])


@pytest.mark.parametrize("wanted", ["upfollow", "follow-down", "followups", "low"])
def test_joining_words_finds_no_more_than_the_name_says(wanted: str) -> None:
    assert not matches_name(wanted, "Follow-up", [])


def test_a_filter_of_many_parts_is_decided_quickly() -> None:
    assert not matches_name("a-" * 49 + "b", "a" * 100, ["a-" * 49])


def test_a_title_is_no_part_of_the_name_that_is_searched() -> None:
    assert not matches_name("d", "Dr. Robert Chen", ["Doctor Bob"])
    assert matches_name("d", "Dr. Diana Chen", [])


def test_words_that_only_begin_like_a_title_are_names() -> None:
    assert matches_name("drake", "Dr. Drake", [])
    assert not matches_name("drake", "Dr. Chen", [])


@pytest.mark.parametrize("wanted", ["", "  ", "Dr.", "doctor", "..."])
def test_no_wanted_word_finds_everybody(wanted: str) -> None:
    assert matches_name(wanted, "Dr. Robert Chen", [])
    assert matches_name(wanted, "Downtown", ["Main Street"])


@pytest.mark.parametrize("name", ["Ada", "Ł", "李", "ب", "3M", "-x-"])
def test_a_name_has_a_letter(name: str) -> None:
    assert has_letter(name)


@pytest.mark.parametrize("name", ["", "...", "-", "'", "ʼ", "ʻ", "12", "\u0301", "❤️", "½"])
def test_digits_punctuation_and_marks_are_no_letters(name: str) -> None:
    assert not has_letter(name)
