"""The schema and the reference of the practice file, generated from its model. After a change of it, write them anew:

.venv/bin/python -m tests.practice_file.reference
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from pydantic.alias_generators import to_camel

import frontdesk.practice_file
from frontdesk.practice_file.fhir import FhirPart
from frontdesk.practice_file.model import FEATURE_PARTS, FilePart
from frontdesk.practice_file.part import Part
from frontdesk.practice_file.published_schema import SCHEMA_FILE
from frontdesk.practice_file.reading import read
from frontdesk.practice_file.schema import generate_schema

SCHEMA = Path(frontdesk.practice_file.__file__).with_name(SCHEMA_FILE)
REFERENCE = Path(__file__).parents[2] / "docs" / "users" / "practice-file.md"
_REF = "#/$defs/"
_MARK = "<!-- Generated from the model by `make generate`: edit the text above, or the model. -->\n"
_HEAD = "| key | meaning | value | default | example |\n|---|---|---|---|---|\n"
# In the order of the page.
_TITLES = {
    FilePart.__name__: "The file",
    "PracticePart": "`practice`",
    "ConsentPart": "`practice.consent`",
    "FeaturesPart": "`practice.features`",
    **{part.__name__: f"`practice.features.{to_camel(name)}`" for name, part in FEATURE_PARTS.items()},
    "FeaturePart": "`practice.features.*`",
    "LocationPart": "`locations`",
    "AddressPart": "`locations[].address`",
    "ClosurePart": "`locations[].closures`",
    "ProviderPart": "`providers`",
    "HoursPart": "`providers[].hours`",
    "TimeOffPart": "`providers[].timeOff`",
    "VisitTypePart": "`visitTypes`",
    "ProcedurePart": "`visitTypes[].procedures`",
    "PatientPart": "`patients`",
    FhirPart.__name__: "`practice.schedulingSystem` of the kind `fhir`",
    "NoAuthPart": "`auth` of the kind `none`",
    "BearerPart": "`auth` of the kind `bearer`",
    "ClientCredentialsPart": "`auth` of the kind `clientCredentials`",
    "SmartBackendPart": "`auth` of the kind `smartBackend`",
    "CodingPart": "Codes",
}


def schema_text() -> str:
    return json.dumps(generate_schema(), indent=2, ensure_ascii=False) + "\n"


@cache
def _validator() -> jsonschema.Draft202012Validator:
    schema = generate_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def schema_violations(text: str) -> list[str]:
    """The places in a file."""
    document, _ = read(text)
    return sorted(error.json_path for error in _validator().iter_errors(document))


def reference_text() -> str:
    """The page: its text up to the mark is written by hand, and kept."""
    by_hand, _, _ = REFERENCE.read_text(encoding="utf-8").partition(_MARK)
    return by_hand + _MARK + "".join(_sections())


def _sections() -> Iterator[str]:
    schema = generate_schema()
    parts = {FilePart.__name__: schema, **schema["$defs"]}
    for name, title in _TITLES.items():
        part = parts[name]
        yield f"\n## {title}\n\n{part['description']}\n\n{_HEAD}"
        for key, about in part["properties"].items():
            required = key in part.get("required", ())
            cells = (f"`{key}`", about["description"], _value(about), _default(about, required), _example(name, key))
            yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |\n"


def _default(about: Mapping[str, Any], required: bool) -> str:
    if required:
        return "required"
    return f"`{json.dumps(about['default'])}`" if about.get("default") not in (None, []) else ""


def _example(name: str, key: str) -> str:
    """As a line of the file; the schema has the keys of its examples in another order."""
    (part,) = (each for each in _parts(Part) if each.__name__ == name)
    (field,) = (field for field in part.model_fields.values() if field.alias == key)
    assert field.examples is not None
    text = yaml.safe_dump({key: field.examples[0]}, default_flow_style=True, sort_keys=False, width=10_000)
    return f"`{text.strip()[1:-1]}`"


def _parts(part: type[Part]) -> Iterator[type[Part]]:
    for each in part.__subclasses__():
        yield each
        yield from _parts(each)


def _value(about: Mapping[str, Any]) -> str:
    """A schema in words."""
    if alternatives := about.get("anyOf") or about.get("oneOf"):
        return " or ".join(_value(each) for each in alternatives if each != {"type": "null"})
    if "$ref" in about:
        return _linked(about["$ref"].removeprefix(_REF))
    if "const" in about:
        return f"`{about['const']}`"
    if "enum" in about:
        return ", ".join(f"`{each}`" for each in about["enum"] if each is not None)
    match about["type"] if isinstance(about["type"], str) else about["type"][0]:
        case "array":
            return f"list: {_value(about['items'])}"
        case "object":
            (entry,) = about["patternProperties"].values()
            return f"mapping of ids: {_value(entry)}"
        case "integer":
            return f"{about['minimum']:,} to {about['maximum']:,}"
        case "boolean":
            return "true or false"
    return f"text, at most {about['maxLength']} characters" if "maxLength" in about else "text"


def _linked(name: str) -> str:
    if name == "SchedulingSystemPart":
        return f"`{{kind: native}}` or {_linked(FhirPart.__name__)}"
    title = _TITLES[name]
    anchor = "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c in "-_")
    return f"[{title}](#{anchor})"


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    REFERENCE.write_text(reference_text(), encoding="utf-8")
