"""Syntax: what YAML and JSON text means, and how text that is neither is refused."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.domain.text import CONTROL
from frontdesk.practice_file import NOT_A_NUMBER, FileError, PracticeFileError, parse
from frontdesk.practice_file.reading import MAX_BYTES, read
from frontdesk.texts import Text
from tests.support.properties import examples

EXAMPLE = Path(__file__).with_name("example.yaml").read_text(encoding="utf-8")
PRACTICE = "practice: {slug: demo, name: Demo, timeZone: America/New_York}\n"


def errors(text: str) -> tuple[FileError, ...]:
    with pytest.raises(PracticeFileError) as caught:
        parse(text)
    return caught.value.errors


@pytest.mark.parametrize(
    "text",
    [
        "09:00",
        "24:00",
        "2026-12-25",
        "2026-12-24T12:00",
        "NO",
        "no",
        "yes",
        "on",
        "02110",
        "0x1F",
        "1_000",
        "1e5",
        "True",
        "Null",
        "+1 555 0100",
        "+15550100",
        "=",
        "<<",
        ".inf",
        ".nan",
        "1.0e+999",
        "9" * 101,
    ],
)
def test_unquoted_scalars_that_other_yaml_readers_convert_stay_text(text: str) -> None:
    assert read(f"key: {text}") == ({"key": text}, [])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        ("~", None),
        ("", None),
        ("true", True),
        ("false", False),
        ("0", 0),
        ("-7", -7),
        ("1440", 1440),
        ("2.5", 2.5),
        ("1.0e+16", 1e16),
    ],
)
def test_null_true_false_and_decimal_numbers_are_not_text(text: str, value: object) -> None:
    document, findings = read(f"key: {text}")
    assert document == {"key": value}
    assert type(document["key"]) is type(value)
    assert findings == []


def test_quotes_always_make_text() -> None:
    document, _ = read("a: '1'\nb: \"true\"\nc: |\n  7\nd: ''\n'1': x\n2: y")
    assert document == {"a": "1", "b": "true", "c": "7\n", "d": "", "1": "x", "2": "y"}


def test_unquoted_times_dates_country_and_postal_code_work_in_a_practice_file() -> None:
    directory = parse(
        PRACTICE
        + """
locations:
  - id: 1
    name: Oslo
    phone: 5550100
    address: {line1: 12, city: Oslo, state: Oslo, postalCode: 0150, country: NO}
    closures: [{from: 2026-12-25, to: 2026-12-26}]
  - id: 2
    name: New York
    address: {line1: 1 Main Street, city: New York, state: NY, postalCode: 10001, country: US}
providers:
  - id: 10
    name: Dr. Chen
    hours: [{location: 1, days: [mon], from: 09:00, to: 24:00}]
    timeOff: [{from: 2026-12-24T12:00, to: 2026-12-28T00:00:00}]
"""
    ).directory
    oslo, new_york = directory.locations.values()
    assert oslo.phone == "5550100"
    assert oslo.address == {"line1": "12", "city": "Oslo", "state": "Oslo", "postalCode": "0150", "country": "NO"}
    assert new_york.address is not None
    assert new_york.address["postalCode"] == "10001"
    assert oslo.closures[0].first.isoformat() == "2026-12-25"
    (hours,) = directory.providers[10].hours
    assert (hours.opens, hours.closes) == (540, 1440)
    (absence,) = directory.providers[10].time_off
    assert (absence.starts.isoformat(), absence.ends.isoformat()) == ("2026-12-24T12:00:00", "2026-12-28T00:00:00")


def test_the_same_file_as_json_means_the_same() -> None:
    document, _ = read(EXAMPLE)
    assert parse(json.dumps(document)) == parse(EXAMPLE)
    assert parse("\ufeff  \n" + json.dumps(document, indent="\t")) == parse("\ufeff" + EXAMPLE)


def test_yaml_that_begins_with_a_brace_is_read_as_yaml() -> None:
    file = parse("{practice: {slug: demo, name: Demo, timeZone: UTC}}  # a comment")
    assert file.directory.practice.slug == "demo"


def test_malformed_yaml_is_one_error_with_line_and_column() -> None:
    (error,) = errors(PRACTICE + "patients:\n  - {number: 1, lastName: Lovelace\n")
    assert error.path == "$"
    assert (error.line, error.column) == (4, 1)
    assert error.message.startswith("not valid YAML (")
    assert "Lovelace" not in error.message


def test_malformed_json_is_one_error_with_line_and_column() -> None:
    (error,) = errors('{"practice": {"slug": "demo",\n  "name": "Demo" "timeZone": "UTC"}}')
    assert error == FileError("$", "not valid JSON (Expecting ',' delimiter)")
    assert (error.line, error.column) == (2, 18)


def test_a_tab_as_indentation_is_an_error_with_line_and_column() -> None:
    (error,) = errors("practice:\n\tslug: demo")
    assert error.message == "not valid YAML (found character that cannot start any token)"
    assert (error.line, error.column) == (2, 1)


def test_a_control_character_in_yaml_is_an_error_with_line_and_column() -> None:
    (error,) = errors(PRACTICE + "patients: [\x00]")
    assert error.message == "not valid YAML (control characters are not allowed)"
    assert (error.line, error.column) == (2, 12)


@pytest.mark.parametrize("text", ["", "   \n", "# nothing but a comment", "just text", "- a\n- b", "[1, 2]", "null"])
def test_a_document_that_is_no_mapping_is_an_error_of_the_whole_document(text: str) -> None:
    assert errors(text) == (FileError("$", "must be a mapping of keys to values"),)


def test_a_second_document_is_refused() -> None:
    (error,) = errors(PRACTICE + "---\n" + PRACTICE)
    assert error.message == "a practice file is one YAML document, and here a second one begins"
    assert (error.line, error.column) == (2, 1)


@pytest.mark.parametrize("text", ["a: &anchor 1", "a: &anchor {b: 1}", "&anchor a: 1", "a: *anchor", "*anchor : 1"])
def test_anchors_and_aliases_are_refused(text: str) -> None:
    (error,) = errors(text)
    assert "YAML anchors and aliases are not supported" in error.message


def test_an_alias_bomb_is_refused_at_its_first_anchor() -> None:
    bomb = "a: &a [x, x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}, *{a}]\n" for a, b in pairwise("abcdefghi"))
    (error,) = errors(bomb)
    assert (error.line, error.column) == (1, 4)


@pytest.mark.parametrize("text", ["a: !!str 1", "a: !!python/object/apply:os.system [ls]", "a: !x {b: 1}", "!x a: 1"])
def test_tags_are_refused(text: str) -> None:
    (error,) = errors(text)
    assert "YAML tags are not supported" in error.message


def test_a_key_that_is_no_scalar_is_refused() -> None:
    (error,) = errors("? [a]\n: 1")
    assert error == FileError("$", "a key must be text")
    assert (error.line, error.column) == (1, 3)


def test_a_file_over_five_megabytes_is_refused_by_its_bytes() -> None:
    (error,) = errors(PRACTICE + "#" + "é" * (MAX_BYTES // 2))
    assert error == FileError("$", "the file is larger than 5 MB")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 40 + "]" * 40, "a: " + "[" * 40 + "]" * 40])
def test_deep_nesting_is_refused(text: str) -> None:
    (error,) = errors(text)
    assert error.path == "$"
    assert "nested too deeply" in error.message


@pytest.mark.parametrize(
    "text",
    [
        PRACTICE + "patients:\n  - {number: 1, firstName: Ada, firstName: Eva, lastName: Lovelace, dob: 1985-12-10,"
        " phone: 5550100199}",
        '{"practice": {"slug": "demo", "name": "Demo", "timeZone": "UTC"}, "patients": [{"number": 1, "firstName":'
        ' "Ada", "firstName": "Eva", "lastName": "Lovelace", "dob": "1985-12-10", "phone": "5550100199"}]}',
    ],
    ids=["yaml", "json"],
)
def test_a_repeated_key_is_an_error_with_its_path(text: str) -> None:
    assert errors(text) == (FileError("patients[0].firstName", "this key appears more than once"),)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "9" * 5000])
def test_json_numbers_beyond_reason_are_errors_with_their_path(number: str) -> None:
    practice = '{"practice": {"slug": "demo", "name": "Demo", "timeZone": "UTC", "minimumNoticeMinutes": %s}}'
    assert errors(practice % number) == (FileError("practice.minimumNoticeMinutes", NOT_A_NUMBER),)


def test_text_with_half_a_surrogate_pair_is_refused() -> None:
    assert errors(PRACTICE + "# \ud800") == (FileError("$", "the file is not valid Unicode text"),)
    escaped = '{"practice": {"slug": "demo", "name": "De\\ud800mo", "timeZone": "UTC"}}'
    assert errors(escaped) == (FileError("practice.name", Text(CONTROL)),)
    key = '{"practice": {"slug": "demo", "name": "Demo", "timeZone": "UTC", "s\\ud800": 1}}'
    assert [error.message for error in errors(key)] == ["must be valid Unicode text"]


@examples(40)
@given(st.one_of(st.text(), st.text("{}[]:,-#&*!|>'\"%@`\\ \n\tab1~?").map(lambda text: PRACTICE + text)))
def test_any_text_is_either_a_practice_file_or_a_list_of_errors(text: str) -> None:
    try:
        slug: str | None = parse(text).directory.practice.slug
        found: tuple[FileError, ...] = ()
    except PracticeFileError as error:
        slug, found = None, error.errors
    assert slug == "demo" or found
    assert all(error.path and error.message for error in found)
