"""Whatever an audit record can be of has a sentence: operations in their definition, actions beside them."""

import ast
import re
from pathlib import Path

import frontdesk
from frontdesk.audit.actions import actions
from frontdesk.operations import every_operation

_NAME = re.compile(r"(?:console|command|patient_link)\.(?!html)[a-z_]+")
_BUILT = re.compile(r"(?:console|command)\.(?:[a-z]+_)?")  # the beginning of a name that is put together
SOURCES = sorted(Path(frontdesk.__file__).parent.rglob("*.py"))


def test_every_operation_that_is_audited_has_a_sentence_and_no_other() -> None:
    for operation in every_operation().values():
        is_audited = operation.kind == "write" or operation.reads_phi
        assert (operation.audit is not None) == is_audited, operation.name


def test_every_name_in_the_code_has_a_sentence() -> None:
    named = actions().keys() | every_operation().keys()
    found = {
        node.value
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAME.fullmatch(node.value)
    }
    built = {name for name in found if _BUILT.fullmatch(name)}
    assert len(found) > len(actions()) / 2
    assert found - built - named == set()
    assert all(any(name.startswith(beginning) for name in named) for beginning in built)


def test_a_sentence_names_the_actor_and_only_then_others() -> None:
    for each in (*every_operation().values(), *actions().values()):
        if each.audit is not None:
            assert re.findall(r"%\(\w+\)s", each.audit.done) == ["%(actor)s"], each.name
            if each.audit.with_names is not None:
                assert re.findall(r"%\(\w+\)s", each.audit.with_names) == ["%(actor)s", "%(names)s"], each.name
