"""What other parts of the service say, in the reader's language."""

import ast

import httpx

from frontdesk.console.domain_texts import translated
from frontdesk.console.language import use_language
from frontdesk.domain.booking_rules import BrokenRule
from frontdesk.domain.errors import FieldError, Problem
from frontdesk.texts import Text
from tests.console.catalogue import EXTRACTED_MODULES, SOURCES

SENTENCES = {
    "Text": 0,
    "Problem": 1,
    "BrokenRule": 1,
    "declined": 0,
    "FieldError": 2,
    "StaffError": 0,
    "TargetError": 0,
}
IN_ENGLISH = {  # for applications and operators
    "access/staff/members.py",
    "domain/consent.py",
    "engine/arguments.py",
    "engine/execute.py",
}


def test_sentences_are_translated_with_their_values() -> None:
    name = Text("A client's name is one line of 1 to %(maximum)s characters.", maximum=100)
    broken = BrokenRule("procedure", Text("%(provider)s does not perform %(procedure)s.", provider="A", procedure="B"))
    length = FieldError("firstName", "maxLength", Text("%(field)s must be at most %(maximum)s characters", maximum=50))
    with use_language("es"):
        assert translated(name) == "El nombre de un cliente es una línea de 1 a 100 caracteres."
        assert translated(Problem("not_found", "There is no such patient.").text) == "No existe ese paciente."
        assert translated(broken.text) == "A no realiza B."
        assert translated(length.text, field="Nombre") == "Nombre: debe tener como máximo 50 caracteres"
    assert translated(name) == str(name) == "A client's name is one line of 1 to 100 characters."
    assert str(broken.text) == "A does not perform B."
    assert length.message == "firstName must be at most 50 characters"


def test_a_sentence_that_no_catalogue_has_stays_as_it_is() -> None:
    """A scheduling system may give any reason, also one with per cent signs."""
    with use_language("es"):
        for reason in ("50 %(s) of 3 places are taken", "%s", "100 %"):
            assert translated(reason, field="Nombre") == reason


def test_no_sentence_that_a_page_may_show_is_put_together_where_it_is_raised() -> None:
    for path in EXTRACTED_MODULES:
        if str(path.relative_to(SOURCES)) in IN_ENGLISH:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SENTENCES:
                text = node.args[SENTENCES[node.func.id] :][:1]
                assert not any(isinstance(each, ast.JoinedStr) for each in text), f"{path.name}:{node.lineno}"


async def test_a_refused_form_says_why_in_the_readers_language(staff: httpx.AsyncClient) -> None:
    patient = {"firstName": " ", "lastName": "Ruiz", "dob": "1990-02-30", "phone": "12"}
    shown = await staff.post("/console/patients/new", data=patient, headers={"Accept-Language": "es"})
    assert "Nombre: no debe estar en blanco" in shown.text
    assert "Teléfono: debe contener al menos 7 dígitos" in shown.text
    missing = await staff.get("/console/appointments/apt_0", headers={"Accept-Language": "es"})
    assert "No existe esa cita." in missing.text


async def test_a_refused_webhook_says_why_in_the_readers_language(admin: httpx.AsyncClient) -> None:
    form = {"url": "http://example.com", "once": "1"}
    shown = await admin.post("/console/practice/webhooks", data=form, headers={"Accept-Language": "de"})
    assert "Die Adresse muss mit https:// beginnen." in shown.text
