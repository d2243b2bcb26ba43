"""What other parts of the service say, in the reader's language."""

import ast
import re
from pathlib import Path

import httpx

import frontdesk
from frontdesk.console.domain_texts import FIELD_ERRORS, field_error, translated
from frontdesk.console.language import use_language
from frontdesk.domain.booking_rules import BrokenRule


def test_sentences_are_translated_with_their_numbers_and_names() -> None:
    name = "A client's name is one line of 1 to 100 characters."
    broken = BrokenRule(
        "procedure", "%(provider)s does not perform %(procedure)s.", {"provider": "A", "procedure": "B"}
    )
    with use_language("es"):
        assert translated(name) == "El nombre de un cliente es una línea de 1 a 100 caracteres."
        assert translated("There is no such patient.") == "No existe ese paciente."
        assert translated(broken.sentence, **broken.values) == "A no realiza B."
        assert field_error("Nombre", "must be at most 50 characters") == "Nombre: debe tener como máximo 50 caracteres"
        assert field_error("Desde", "must be a time like 09:00") == "Desde: debe ser una hora como 09:00"
    assert (translated(name), broken.text) == (name, "A does not perform B.")


def test_a_sentence_that_no_catalogue_has_stays_as_it_is() -> None:
    """A scheduling system may give any reason, also one with per cent signs."""
    with use_language("es"):
        for said in ("50 %(s) of 3 places are taken", "%s", "100 %"):
            assert translated(said) == said
            assert field_error("Nombre", said) == f"Nombre {said}"


def test_every_reason_for_which_an_operation_declines_is_translated() -> None:
    texts = set()
    for path in sorted((Path(frontdesk.__file__).parent / "operations").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "declined":
                reason = node.args[0]
                parts = reason.values if isinstance(reason, ast.JoinedStr) else [reason]
                if isinstance(parts[0], ast.Constant):
                    texts.add("".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in parts))
    assert "This began more than 7 minutes ago, and can no longer be booked." in texts
    with use_language("es"):
        assert [text for text in texts if translated(text) == text] == []


def test_the_listed_errors_are_those_that_fields_have() -> None:
    folder = Path(frontdesk.__file__).parent
    parts = ("console", "desk", "domain", "engine", "operations", "practice_file")
    code = "".join(
        path.read_text(encoding="utf-8")
        for part in parts
        for path in sorted((folder / part).rglob("*.py"))
        if path.name != "domain_texts.py"
    )
    for error in FIELD_ERRORS:
        message = re.sub(r"%\\\(\w+\\\)s", "{[^}]+}", re.escape(error.removeprefix("%(field)s ")))
        assert re.search(message, code), error


async def test_a_refused_form_says_why_in_the_readers_language(staff: httpx.AsyncClient) -> None:
    patient = {"firstName": " ", "lastName": "Ruiz", "dob": "1990-02-30", "phone": "12"}
    shown = await staff.post("/console/patients/new", data=patient, headers={"Accept-Language": "es"})
    assert "Nombre: no debe estar en blanco" in shown.text
    assert "Teléfono: debe contener al menos 7 dígitos" in shown.text
    missing = await staff.get("/console/appointments/apt_0", headers={"Accept-Language": "es"})
    assert "No existe esa cita." in missing.text
