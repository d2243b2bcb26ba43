"""Every text of the console is in the catalogue, and every catalogue is complete."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from jinja2 import Environment, nodes

from frontdesk.console.language import LANGUAGES, SOURCE
from tests.console.catalogue import (
    EXTRACTED_CALLS,
    EXTRACTED_MODULES,
    FOLDERS,
    SOURCES,
    catalogues_of,
    collected,
    read,
    template_of,
    written,
)
from tests.console.test_templates import MODULES, SCRIPTS, TEMPLATES

JINJA = re.compile(r"\{#.*?#\}|\{%-?\s*trans\b.*?endtrans\s*-?%\}|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
WORD = re.compile(r"[^\W\d_]{2,}")
SPOKEN = {"aria-label", "title", "placeholder", "alt", "data-label", "label"}
SILENT = {"script", "style", "pre", "code"}
NO_TEXTS = {"frontdesk", "· frontdesk", "YAML", "JSON", "ms", "outside-long", "not supported"}
SENT_TO_APPLICATIONS = {  # by OAuth and to readers of calendars, in English
    "There is no calendar at this address.",
    "This calendar was read too often in this minute.",
    "The staff member did not agree.",
}
SHOWN_TO_STAFF = ("access/staff", "audit", "desk", "domain", "systems")
# What these say is for operators and integrators.
IN_ENGLISH = {"add_counter", "add_gauge", "Field", "InvalidReceipt", "ListedOperation", "Reported"}
WRAPPERS = {"_", "gettext", "ngettext", "pgettext", "N_"}
PLACEHOLDER = re.compile(r"%\(\w+\)s|%%")
MARKUP = re.compile(r"<[^>]*>")


class _Bare(HTMLParser):
    """Words of a page that stand in the template itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in SILENT
        for name, value in attrs:
            if name in SPOKEN or (tag == "input" and name == "value" and ("type", "submit") in attrs):
                self._note(value or "")

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in SILENT

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._note(data)

    def _note(self, text: str) -> None:
        if WORD.search(text) and text.strip() not in NO_TEXTS:
            self.found.append(text.strip())


def test_every_text_of_a_template_is_wrapped() -> None:
    environment = Environment(extensions=["jinja2.ext.i18n"])
    for path in TEMPLATES:
        source = path.read_text(encoding="utf-8")
        parser = _Bare()
        parser.feed(JINJA.sub("", source))
        assert parser.found == [], path.name
        wrapped, bare = set(), []
        tree = environment.parse(source)
        for call in tree.find_all(nodes.Call):
            if isinstance(call.node, nodes.Name) and call.node.name in WRAPPERS:
                wrapped |= {id(each) for each in call.args}
                if not isinstance(call.args[0], nodes.Const):
                    bare.append(f"line {call.lineno}: not a constant, so it would not be escaped; use |translated")
        for const in tree.find_all(nodes.Const):
            text = const.value
            if isinstance(text, str) and id(const) not in wrapped and re.match(r"[A-Z][a-z]+|[a-z]+ [a-z ]+$", text):
                bare.append(text)
        assert set(bare) <= NO_TEXTS, path.name


def test_every_sentence_of_a_module_is_in_the_catalogue() -> None:
    known = {text for catalog in _current().values() for message in catalog for text, _ in _pairs(message)}
    paths = [path for part in SHOWN_TO_STAFF for path in sorted((SOURCES / part).rglob("*.py"))]
    for path in (*MODULES, *paths):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        quiet = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
        quiet |= {id(argument) for call in _said_in_english(tree) for argument in _arguments(call)}
        found = {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quiet
            if re.match(r"[A-Z][a-z]* [^\n]*[.?]$", node.value)
        }
        assert found - SENT_TO_APPLICATIONS <= known, path.name


def test_no_text_stands_inside_an_f_string() -> None:
    """Babel overlooks one on Python 3.11; on later ones it takes any string in a placeholder for a text."""
    for path in EXTRACTED_MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        in_texts = [
            each for call in _wrapping_calls(tree) for argument in call.args for each in _placeholders(argument)
        ]
        texts = [call for placeholder in _placeholders(tree) for call in _wrapping_calls(placeholder)]
        hidden = [each for node in (*in_texts, *texts) for each in ast.walk(node) if isinstance(each, ast.Constant)]
        assert [each.value for each in hidden if isinstance(each.value, str)] == [], path.name


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _wrapping_calls(tree: ast.AST) -> list[ast.Call]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in EXTRACTED_CALLS]


def _said_in_english(tree: ast.AST) -> list[ast.Call]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if ast.unparse(call.func).rpartition(".")[2] in IN_ENGLISH]


def _placeholders(tree: ast.AST) -> list[ast.expr]:
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.FormattedValue)]


@cache
def _current() -> dict[str, Catalog]:
    return collected()


@pytest.mark.parametrize("owner", FOLDERS)
def test_the_catalogue_of_texts_is_current(owner: str) -> None:
    path = template_of(owner)
    template = read(path)
    template.update(_current()[owner], no_fuzzy_matching=True)
    assert path.read_text(encoding="utf-8") == written(path, template), "run make catalogue"


@pytest.mark.parametrize(
    ("owner", "path"),
    [(owner, path) for owner in FOLDERS for path in catalogues_of(owner)],
    ids=lambda each: each.stem if isinstance(each, Path) else each,
)
def test_a_catalogue_is_complete(owner: str, path: Path) -> None:
    catalogue = read(path)
    texts = {_key(message): message for message in catalogue if message.id}
    assert [key for key in map(_key, _current()[owner]) if key[1] and key not in texts] == [], "run make catalogue"
    for message in texts.values():
        assert not message.fuzzy, message.id
        for source, translation in _pairs(message):
            assert translation.strip(), source
            assert sorted(PLACEHOLDER.findall(translation)) == sorted(PLACEHOLDER.findall(source)), translation
            assert sorted(MARKUP.findall(translation)) == sorted(MARKUP.findall(source)), translation
            assert '"' not in MARKUP.sub("", translation), f"would end an attribute: {translation}"


def test_the_languages_offered_are_those_with_a_catalogue() -> None:
    assert set(LANGUAGES) == {SOURCE, *(path.stem for path in catalogues_of("console"))}


def _key(message: Message) -> tuple[str, str]:
    return message.context or "", message.id if isinstance(message.id, str) else message.id[0]


def _pairs(message: Message) -> Iterator[tuple[str, str]]:
    if isinstance(message.id, str):
        yield message.id, str(message.string)
    else:
        yield from zip(message.id, message.string, strict=True)


def test_scripts_have_no_texts_of_their_own() -> None:
    for path in SCRIPTS:
        code = re.sub(r"/\*.*?\*/|(?m:(?<!:)//.*$)", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert re.findall(r"""["'`]([A-Z][a-z]+ [a-z][^"'`]*)["'`]""", code) == [], path.name
