"""Rules: every error of a file is found at once, with its path, in document order, without repeating values."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from frontdesk.domain.directory import Directory, Practice
from frontdesk.practice_file import FileError, PatientRecord, PracticeFile, PracticeFileError, parse

EXAMPLE = Path(__file__).with_name("example.yaml").read_text(encoding="utf-8")
PRACTICE = "practice: {slug: demo, name: Demo, timeZone: America/New_York}\n"
PROCEDURE = "visitTypes: [{id: 20, name: Exam, procedures: [{id: 100, name: Exam, durationMinutes: 15}]}]\n"
LOCATION = "locations: [{id: 1, name: Downtown}]\n"


def errors(text: str, *, known: Directory | None = None, today: date | None = None) -> list[tuple[str, str]]:
    with pytest.raises(PracticeFileError) as caught:
        parse(text, known=known, today=today)
    return [(error.path, error.message) for error in caught.value.errors]


def test_the_example_is_read_completely() -> None:
    file = parse(EXAMPLE, today=date(2026, 11, 15))
    directory = file.directory
    assert directory.practice == Practice(
        "harbor-family", "Harbor Family Medicine", "America/New_York", "+1 555 0100", minimum_notice_minutes=60
    )
    downtown = directory.locations[1]
    assert downtown.aliases == ("Main Street",)
    assert downtown.closures[0].reason == "Christmas Day"
    chen = directory.providers[10]
    assert chen.procedure_ids == {100, 101}
    assert [(h.days, h.opens, h.closes) for h in chen.hours] == [
        (frozenset(range(5)), 540, 720),
        (frozenset({0}), 780, 1020),
    ]
    assert chen.hours[1].effective_to == date(2026, 12, 31)
    assert chen.time_off[0].reason == "Leave"
    assert [(v.id, v.patient_kind) for v in directory.visit_types.values()] == [(20, "new"), (21, "existing")]
    assert directory.visit_types[20].procedures[0].duration_minutes == 30
    assert file.patients == (
        PatientRecord(1, "Ada", "Lovelace", date(1985, 12, 10), "+1 555 010 0199", email=None, seen=True),
    )


def test_only_the_practice_is_required() -> None:
    empty = Directory(Practice("demo", "Demo", "America/New_York"), {}, {}, {})
    assert parse(PRACTICE) == PracticeFile(empty, ())
    assert parse(PRACTICE + "locations:\nproviders: []\npatients: ~\n") == PracticeFile(empty, ())
    assert errors("locations: []") == [("practice", "is required")]


def test_defaults_are_those_of_the_domain() -> None:
    file = parse(PRACTICE + LOCATION + PROCEDURE + "providers: [{id: 10, name: Dr. Chen}]")
    location, chen = file.directory.locations[1], file.directory.providers[10]
    assert (location.time_zone, location.aliases, location.phone, location.address) == (
        "America/New_York",
        (),
        None,
        None,
    )
    assert (chen.accepts_new_patients, chen.capacity, chen.procedure_ids, chen.hours) == (True, 1, None, ())
    assert file.directory.visit_types[20].patient_kind == "any"
    assert file.directory.visit_types[20].procedures[0].buffer_after_minutes == 0


def test_records_are_ordered_by_id() -> None:
    file = parse(PRACTICE + "locations: [{id: 3, name: C}, {id: 1, name: A}, {id: 2, name: B}]")
    assert list(file.directory.locations) == [1, 2, 3]


def test_every_error_is_listed_in_document_order() -> None:
    text = """
providers:
  - name: Dr. Chen
    hours:
      - {to: 08:00, from: 09:00, location: 9, days: [mon, monday]}
    procedures: [999]
    id: 0
patients:
  - {number: 1, firstName: Ada, lastName: Lovelace, dob: yesterday, phone: 555}
  - {number: 1, firstName: Eva, lastName: Lovelace, dob: 1990-02-30, phone: +1 555 010 0199, seen: no}
practice:
  timeZone: Mars/Base
  slug: Demo
  sandbx: true
locations: none
"""
    assert errors(text) == [
        ("providers[0].hours[0].to", "must be after from"),
        ("providers[0].hours[0].location", "there is no location with this id"),
        ("providers[0].hours[0].days[1]", "must be 'mon', 'tue', 'wed', 'thu', 'fri', 'sat' or 'sun'"),
        ("providers[0].procedures[0]", "there is no procedure with this id"),
        ("providers[0].id", "must be from 1 to 2147483647"),
        ("patients[0].dob", "must be a date like 2026-12-25"),
        ("patients[0].phone", "must contain 7 to 15 digits"),
        ("patients[1].number", "this number is already used in this list"),
        ("patients[1].dob", "must be a date that exists"),
        ("patients[1].seen", "must be true or false"),
        ("practice.timeZone", "must be an IANA time zone like America/New_York"),
        ("practice.slug", "must be 1 to 63 of a-z, 0-9 and -, neither beginning nor ending with -"),
        ("practice.sandbx", "unknown key; the closest known key is sandbox"),
        ("practice.name", "is required"),
        ("locations", "must be a list"),
    ]


def test_the_error_reads_as_one_line_per_error() -> None:
    error = PracticeFileError([FileError("practice.slug", "is required"), FileError("$", "other")])
    assert str(error) == "practice.slug: is required\n$: other"


def test_ids_are_unique_within_their_list() -> None:
    text = (
        PRACTICE
        + """
locations: [{id: 1, name: A}, {id: 1, name: B}]
providers: [{id: 1, name: A}, {id: 2, name: B}, {id: 1, name: C}]
visitTypes:
  - {id: 1, name: A, procedures: [{id: 1, name: A, durationMinutes: 5}, {id: 1, name: B, durationMinutes: 5}]}
  - {id: 1, name: B}
"""
    )
    assert [path for path, _ in errors(text)] == [
        "locations[1].id",
        "providers[2].id",
        "visitTypes[0].procedures[1].id",
        "visitTypes[1].id",
    ]


def test_a_procedure_may_hang_off_several_visit_types_with_its_own_duration() -> None:
    procedure = "procedures: [{id: 1, name: A, durationMinutes: %d}]"
    text = f"visitTypes: [{{id: 1, name: A, {procedure % 5}}}, {{id: 2, name: B, {procedure % 10}}}]"
    visit_types = parse(PRACTICE + text).directory.visit_types
    assert [v.procedures[0].duration_minutes for v in visit_types.values()] == [5, 10]


def test_references_are_checked_against_records_that_have_other_errors() -> None:
    text = PRACTICE + (
        "locations: [{id: 1}]\n"
        "visitTypes: [{id: 20, procedures: [{id: 100}]}]\n"
        "providers: [{id: 10, name: A, procedures: [100], hours: [{location: 1, days: [mon], from: 09:00, to: 10:00}]}]"
    )
    assert [path for path, _ in errors(text)] == [
        "locations[0].name",
        "visitTypes[0].procedures[0].name",
        "visitTypes[0].procedures[0].durationMinutes",
        "visitTypes[0].name",
    ]


def test_a_partial_file_may_refer_to_what_is_stored() -> None:
    text = PRACTICE + (
        "providers: [{id: 10, name: A, procedures: [100], hours: [{location: 1, days: [mon], from: 09:00, to: 10:00}]}]"
    )
    assert [path for path, _ in errors(text)] == ["providers[0].procedures[0]", "providers[0].hours[0].location"]
    known = parse(PRACTICE + LOCATION + PROCEDURE).directory
    assert parse(text, known=known).directory.providers[10].location_ids == (1,)


def test_a_file_may_not_refer_to_what_was_pruned() -> None:
    known = parse(PRACTICE + LOCATION + PROCEDURE).directory
    pruned = Directory(
        known.practice,
        {1: replace(known.locations[1], active=False)},
        {},
        {20: replace(known.visit_types[20], active=False)},
    )
    text = PRACTICE + (
        "providers: [{id: 10, name: A, procedures: [100], hours: [{location: 1, days: [mon], from: 09:00, to: 10:00}]}]"
    )
    assert [path for path, _ in errors(text, known=pruned)] == [
        "providers[0].procedures[0]",
        "providers[0].hours[0].location",
    ]


def test_a_location_without_a_zone_keeps_its_own_stored_one_or_else_follows_the_practice() -> None:
    known = parse(PRACTICE + "locations: [{id: 1, name: A}, {id: 2, name: B, timeZone: America/Chicago}]").directory
    text = (
        "practice: {slug: demo, name: Demo, timeZone: America/Denver}\n"
        "locations: [{id: 1, name: A}, {id: 2, name: B}, {id: 3, name: C}]"
    )
    zones = [location.time_zone for location in parse(text, known=known).directory.locations.values()]
    assert zones == ["America/Denver", "America/Chicago", "America/Denver"]


def test_the_scheduling_system_is_native_unless_said_otherwise() -> None:
    system = "practice: {slug: a, name: A, timeZone: UTC, schedulingSystem: %s}"
    assert parse(system % "{kind: native}").directory.practice.scheduling_system == {"kind": "native"}
    assert errors(system % "{kind: native, url: x}") == [
        ("practice.schedulingSystem.url", "unknown key; the closest known key is kind")
    ]
    assert errors(system % "{kind: paper}") == [("practice.schedulingSystem.kind", "must be 'native' or 'fhir'")]
    assert errors(system % "{}") == [("practice.schedulingSystem.kind", "is required")]
    assert errors(system % "native") == [("practice.schedulingSystem", "must be a mapping of keys to values")]


def test_faults_never_repeat_what_a_file_says_about_a_patient() -> None:
    text = PRACTICE + (
        "patients:\n"
        "  - {number: Zaphod, firstName: [Zaphod], lastName: {Zaphod: 1}, dob: Zaphod, phone: Zaphod, email: Zaphod,"
        " seen: Zaphod, Zaphod: Zaphod, Zaphod: 1, Zaphod Beeblebrox: ~}\n"
        "  - Zaphod\n"
    )
    with pytest.raises(PracticeFileError) as caught:
        parse(text)
    assert "Zaphod" not in str(caught.value)
    assert "Beeblebrox" not in str(caught.value)
    assert [error.path for error in caught.value.errors].count("patients[0].?") == 3
    assert [error.path for error in caught.value.errors][-1] == "patients[1]"


def positions(text: str) -> list[tuple[str, int | None, int | None]]:
    with pytest.raises(PracticeFileError) as caught:
        parse(text)
    return [(error.path, error.line, error.column) for error in caught.value.errors]


def test_faults_are_told_with_line_and_column() -> None:
    text = """# a comment
practice:
  slug: demo
  timeZone: Mars/Olympus
  name: One
  name: Two
locations:
  - id: 1
  - {id: 1, name: Twice, colour: red}
providers: nobody
patients:
  - {number: 1, firstName: Ada, lastName: Lovelace,
     dob: yesterday, phone: "5550100199"}
"""
    expected = [
        ("practice.timeZone", 4, 3),
        ("practice.name", 6, 3),
        ("locations[0].name", 8, 5),
        ("locations[1].id", 9, 6),
        ("locations[1].colour", 9, 26),
        ("providers", 10, 1),
        ("patients[0].dob", 13, 6),
    ]
    assert positions(text) == expected
    assert positions("\ufeff" + text) == expected
    assert positions(text.replace("\n", "\r\n")) == expected


def test_faults_of_json_are_told_with_line_and_column_unless_it_is_no_yaml() -> None:
    document = {"practice": {"slug": "demo", "name": "Demo", "timeZone": "Mars"}, "locations": [{"id": 0}]}
    expected = [("practice.timeZone", 5, 5), ("locations[0].id", 9, 7), ("locations[0].name", 8, 5)]
    assert positions(json.dumps(document, indent=2)) == expected
    by_tabs = positions(json.dumps(document, indent="\t"))
    assert [path for path, _, _ in by_tabs] == [path for path, _, _ in expected]
