"""The JSON Schema and the reference: as the model says, true of every valid file, and with an example for each key."""

from dataclasses import replace
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from frontdesk.demo.practice import demo_practice
from frontdesk.practice_file import dump, parse
from frontdesk.practice_file.published_schema import schema_text
from frontdesk.practice_file.schema import generate_schema
from tests.fhir.practice import file_text
from tests.practice_file import reference
from tests.practice_file.reference import schema_violations
from tests.support.world import PRACTICE

EXAMPLE = Path(__file__).with_name("example.yaml").read_text(encoding="utf-8")
NEW = (files("frontdesk.practice_file") / "new_practice.yaml").read_text(encoding="utf-8")
FHIR = file_text("harbor", "https://ehr.example.com/fhir", auth={"kind": "bearer", "tokenEnv": "TOKEN"})


def test_schema_and_reference_are_current() -> None:
    assert schema_text() == reference.schema_text(), "run make generate"
    assert reference.REFERENCE.read_text(encoding="utf-8") == reference.reference_text(), "run make generate"


@pytest.mark.parametrize("text", [EXAMPLE, NEW, FHIR, PRACTICE.replace("SLUG", "harbor")])
def test_valid_files_match_the_schema(text: str) -> None:
    assert schema_violations(text) == []
    assert schema_violations(dump(parse(text))) == []


def test_the_demo_practice_matches_the_schema() -> None:
    demo = demo_practice(date(2026, 11, 16))
    assert schema_violations(dump(replace(demo, patients=demo.patients[:5]))) == []


def test_keys_without_a_value_and_unquoted_numbers_match_the_schema() -> None:
    text = NEW.replace("aliases: [Main Street]", "aliases:")
    text = text.replace("minimumNoticeMinutes: 60", "minimumNoticeMinutes:").replace(
        '# phone: "+1 555 010 0100"', "phone: 5550100100"
    )
    assert parse(text).directory.practice.phone == "5550100100"
    assert schema_violations(text) == []


@pytest.mark.parametrize(
    ("right", "wrong", "place"),
    [
        ("slug: my-practice", "slug: My Practice", "$.practice.slug"),
        ("bookingHorizonDays: 90", "bookingHorizonDays: 0", "$.practice.bookingHorizonDays"),
        ("bookingHorizonDays: 90", "bookingHorizon: 90", "$.practice"),
        ('from: "09:00"', 'from: "9"', "$.providers[0].hours[0].from"),
        ("days: [mon, tue, thu]", "days: []", "$.providers[0].hours[1].days"),
        ("patientKind: new", "patientKind: some", "$.visitTypes[0].patientKind"),
        ("    name: Main office\n", "", "$.locations[0]"),
        ("practice:\n", "practice:\n  schedulingSystem: {kind: paper}\n", "$.practice.schedulingSystem"),
    ],
)
def test_mistakes_violate_the_schema_where_they_are(right: str, wrong: str, place: str) -> None:
    assert right in NEW
    (found,) = schema_violations(NEW.replace(right, wrong, 1))
    assert found == place


def test_every_key_has_a_meaning_and_an_example_that_fits() -> None:
    schema = generate_schema()
    for name, part in {"": schema, **schema["$defs"]}.items():
        for key, about in part.get("properties", {}).items():
            if name == "SchedulingSystemPart":
                continue
            assert about["description"], (name, key)
            (example,) = about["examples"]
            fits: Any = jsonschema.Draft202012Validator({**about, "$defs": schema["$defs"]})
            assert fits.is_valid(example), (name, key)
            assert example != about.get("default"), "an example shows something else than the default"
