"""Validates the parsed data of a practice file as a whole and collects every error.

Each check tolerates errors that other checks report, so that one run finds all of them.
"""

import re
from collections.abc import Mapping
from datetime import date
from difflib import get_close_matches
from functools import lru_cache

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from frontdesk.domain.directory import Directory
from frontdesk.practice_file import fhir
from frontdesk.practice_file.errors import NOT_A_NUMBER, FileError, Finding, PracticeFileError, Steps, position
from frontdesk.practice_file.fields import text_of
from frontdesk.practice_file.model import PARTS, FilePart, PatientPart, ValidationContext
from frontdesk.practice_file.part import Part
from frontdesk.practice_file.positions import Positions
from frontdesk.texts import N_, Text

Ids = list[tuple[Steps, int]]  # the ids in one list, each with its path

_TEXTS: Mapping[str, str | Text] = {
    "missing": Text(N_("%(field)s is required")),
    "int_type": NOT_A_NUMBER,
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
    "dict_type": "must be a mapping of keys to values",
    "union_tag_not_found": "kind is required",
    "string_unicode": "must be valid Unicode text",
}
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")


def check(
    text: str, document: object, findings: list[Finding], known: Directory | None, today: date | None
) -> FilePart:
    """The validated document that was read from the text; raises PracticeFileError with all findings in document
    order."""
    listed = _listed_ids(document)
    findings = [*findings, *_repeated_ids(document), *_system_settings(document, listed, known)]
    try:
        file = FilePart.model_validate(document, context=_surroundings(listed, known, today))
    except ValidationError as error:
        findings += [_finding(details["loc"], details) for details in error.errors(include_url=False)]
    if findings:
        findings.sort(key=lambda finding: position(document, finding.steps))
        positions = Positions(text, (finding.steps for finding in findings))
        raise PracticeFileError(_error(finding, positions) for finding in findings)
    return file


def _error(finding: Finding, positions: Positions) -> FileError:
    line, column = positions.of(finding.steps, last=finding.repeated) or (None, None)
    return FileError(_path(finding.steps), finding.text, line, column)


def _ids(parent: object, steps: Steps, section: str, key: str = "id") -> Ids:
    return [
        ((*steps, section, index, key), row[key])
        for index, row in enumerate(_list(parent, section))
        if isinstance(row, dict) and type(row.get(key)) is int
    ]


def _list(parent: object, section: str) -> list[object]:
    rows = parent.get(section) if isinstance(parent, dict) else None
    return rows if isinstance(rows, list) else []


def _procedure_ids(document: object) -> list[Ids]:
    """One list per visit type: a procedure may belong to several visit types."""
    rows = enumerate(_list(document, "visitTypes"))
    return [_ids(row, ("visitTypes", index), "procedures") for index, row in rows]


def _listed_ids(document: object) -> dict[str, set[int]]:
    lists = {section: [_ids(document, (), section)] for section in ("locations", "providers", "visitTypes")}
    lists["procedures"] = _procedure_ids(document)
    return {section: {number for ids in found for _, number in ids} for section, found in lists.items()}


def _surroundings(listed: Mapping[str, set[int]], known: Directory | None, today: date | None) -> ValidationContext:
    location_ids, procedure_ids = listed["locations"], listed["procedures"]
    if known is not None:
        location_ids = location_ids | {record.id for record in known.locations.values() if record.active}
        visit_types = [record for record in known.visit_types.values() if record.active]
        procedure_ids = procedure_ids | {row.id for record in visit_types for row in record.procedures if row.active}
    return ValidationContext(location_ids, procedure_ids, today)


def _repeated_ids(document: object) -> list[Finding]:
    findings = []
    for ids in (
        _ids(document, (), "locations"),
        _ids(document, (), "providers"),
        _ids(document, (), "visitTypes"),
        _ids(document, (), "patients", "number"),
        *_procedure_ids(document),
    ):
        seen: set[int] = set()
        for steps, number in ids:
            if number in seen:
                findings.append(Finding(steps, f"this {steps[-1]} is already used in this list"))
            seen.add(number)
    return findings


def _system_settings(document: object, listed: Mapping[str, set[int]], known: Directory | None) -> list[Finding]:
    practice = document.get("practice") if isinstance(document, dict) else None
    system = practice.get("schedulingSystem") if isinstance(practice, dict) else None
    if not isinstance(system, dict):
        return []
    if system.get("kind") == "native":
        places = [(*fhir.PLACE, key) for key in system if key != "kind"]
        return [Finding(steps, _unknown(steps)) for steps in places]
    if system.get("kind") != "fhir":
        return []
    found = [_finding(steps, details, fhir.part_at(system, steps)) for steps, details in fhir.errors(system)]
    if _list(document, "patients"):
        found.append(Finding(("patients",), "the patients of this practice are kept in its scheduling system"))
    return [*found, *fhir.references(system, listed, known)]


def _finding(steps: Steps, details: ErrorDetails, part: type[Part] | None = None) -> Finding:
    kind = details["type"]
    if kind == "rule":
        text: str | Text = text_of(details)
    elif kind == "extra_forbidden":
        text = _unknown(steps, part)
    elif kind == "union_tag_invalid":
        text = f"its kind must be one of {details['ctx']['expected_tags']}"
    elif kind == "literal_error":
        text = f"must be {details['ctx']['expected']}"
    elif kind == "string_type":
        is_scalar = isinstance(details["input"], bool | int | float)
        text = "must be text; put it in quotes" if is_scalar else Text(N_("%(field)s must be text"))
    else:
        text = _TEXTS[kind]
    return Finding(steps, text)


def _unknown(steps: Steps, part: type[Part] | None = None) -> str:
    part = part or PARTS[tuple(step for step in steps[:-1] if isinstance(step, str))]
    (closest,) = _closest(str(steps[-1]), part.keys(), likeness=0)
    return f"unknown key; the closest known key is {closest}"


@lru_cache  # the same mistake usually occurs in every row
def _closest(key: str, known: tuple[str, ...], likeness: float) -> list[str]:
    folded = {_folded(name): name for name in known}
    return [folded[name] for name in get_close_matches(_folded(key), folded, n=1, cutoff=likeness)]


def _folded(key: str) -> str:
    # Only the beginning is compared, to bound the time for very long keys.
    return key[:40].casefold().replace("_", "").replace("-", "")


def _path(steps: Steps) -> str:
    if not steps:
        return "$"
    return "".join(f"[{step}]" if isinstance(step, int) else f".{_shown(step, steps)}" for step in steps).lstrip(".")


def _shown(key: str, steps: Steps) -> str:
    """A key as part of a path, or ? if it could be patient data."""
    if steps[0] == "patients" and key != "patients" and not _closest(key, PatientPart.keys(), likeness=0.6):
        return "?"
    named_by_id = steps[: len(fhir.PLACE)] == fhir.PLACE and key.isdecimal() and len(key) <= 10
    return key if named_by_id or _KEY.fullmatch(key) else "?"
