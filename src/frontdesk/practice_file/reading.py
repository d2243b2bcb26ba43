"""Reads practice file text, YAML or JSON, as plain data.

A strict subset of YAML: unquoted values are text unless they are null, true, false or decimal numbers, so 09:00,
2026-12-25, NO and 02110 are text. Anchors, aliases and tags are refused.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import yaml
from yaml.reader import Reader

from frontdesk.practice_file.errors import FileError, Finding, PracticeFileError, Steps

MAX_BYTES = 5 * 1024 * 1024
MAX_DEPTH = 32

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,99})")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]{0,99})\.[0-9]{1,99}(?:[eE][-+][0-9]{1,3})?")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}


def read(text: str) -> tuple[object, list[Finding]]:
    """The document as dicts, lists and scalars, with a finding for each repeated key."""
    text = text.removeprefix("\ufeff")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        _refuse("the file is not valid Unicode text")
    refuse_large(size)
    if text.lstrip().startswith(("{", "[")):
        return _read_json(text)
    return _read_yaml(text)


def refuse_large(size: int) -> None:
    if size > MAX_BYTES:
        _refuse(f"the file is larger than {MAX_BYTES // 1024 // 1024} MB")


def _refuse(message: str) -> NoReturn:
    raise PracticeFileError([FileError("$", message)])


def _refuse_at(line: int, column: int, message: str) -> NoReturn:
    raise PracticeFileError([FileError("$", message, line, column)])


# JSON


class _Object(list[tuple[str, object]]):
    """The pairs of a JSON object, including repeated keys."""


def _read_json(text: str) -> tuple[object, list[Finding]]:
    try:
        document = json.loads(text, object_pairs_hook=_Object, parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        _refuse("the file is nested too deeply")
    except ValueError as error:
        # A YAML file may begin with a brace, too.
        try:
            return _read_yaml(text)
        except PracticeFileError:
            if not isinstance(error, json.JSONDecodeError):
                raise
            _refuse_at(error.lineno, error.colno, f"not valid JSON ({error.msg})")
    findings: list[Finding] = []
    return _plain(document, (), findings), findings


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _plain(value: object, steps: Steps, findings: list[Finding]) -> object:
    if isinstance(value, list) and len(steps) >= MAX_DEPTH:
        _refuse("the file is nested too deeply")
    if isinstance(value, _Object):
        mapping: dict[str, object] = {}
        for key, item in value:
            _add(mapping, key, _plain(item, (*steps, key), findings), steps, findings)
        return mapping
    if isinstance(value, list):
        return [_plain(item, (*steps, index), findings) for index, item in enumerate(value)]
    return value


# YAML


def _read_yaml(text: str) -> tuple[object, list[Finding]]:
    if odd := Reader.NON_PRINTABLE.search(text):
        before = text[: odd.start()]
        _refuse_at(
            before.count("\n") + 1,
            len(before) - before.rfind("\n"),
            "not valid YAML (control characters are not allowed)",
        )
    findings: list[Finding] = []
    try:
        return _document(yaml.parse(text, Loader=yaml.CSafeLoader), findings), findings
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        assert mark is not None
        _refuse_at(mark.line + 1, mark.column + 1, f"not valid YAML ({error.problem})")


def _document(events: Iterator[object], findings: list[Finding]) -> object:
    document = None
    started = False
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            if started:
                _refuse_event(event, "a practice file is one YAML document, and here a second one begins")
            started = True
            document = _value(next(events), events, (), findings)
    return document


def _value(event: object, events: Iterator[object], steps: Steps, findings: list[Finding]) -> object:
    _check_undecorated(event)
    if isinstance(event, yaml.ScalarEvent):
        is_plain, _ = event.implicit
        return _scalar(event.value) if is_plain else event.value
    if len(steps) >= MAX_DEPTH:
        _refuse_event(event, "nested too deeply")
    if isinstance(event, yaml.SequenceStartEvent):
        items: list[object] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(_value(event, events, (*steps, len(items)), findings))
        return items
    mapping: dict[str, object] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        _check_undecorated(event)
        if not isinstance(event, yaml.ScalarEvent):
            _refuse_event(event, "a key must be text")
        value = _value(next(events), events, (*steps, event.value), findings)
        _add(mapping, event.value, value, steps, findings)
    return mapping


def _check_undecorated(event: Any) -> None:  # the library has no types
    if event.anchor is not None:
        _refuse_event(event, "YAML anchors and aliases are not supported; text that begins with & or * needs quotes")
    if event.tag is not None:
        _refuse_event(event, "YAML tags are not supported; text that begins with ! needs quotes")


def _refuse_event(event: Any, message: str) -> NoReturn:  # as above
    _refuse_at(event.start_mark.line + 1, event.start_mark.column + 1, message)


def _scalar(text: str) -> object:
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text


def _add(mapping: dict[str, object], key: str, value: object, steps: Steps, findings: list[Finding]) -> None:
    if key in mapping:
        findings.append(Finding((*steps, key), "this key appears more than once", repeated=True))
    else:
        mapping[key] = value
