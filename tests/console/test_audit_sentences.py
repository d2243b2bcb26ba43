"""Every record of the audit trail reads as a whole sentence, in every language."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from frontdesk.console.audit_sentences import audit_sentence, operation_title, recorded
from frontdesk.console.language import LANGUAGES, SOURCE, use_language
from frontdesk.desk.audit_lines import Line, Subject
from frontdesk.desk.names import Actor

OUTCOMES = ("executed", "unchanged", "replayed", "confirmation_required", "conflict")
ABOUT = (Subject("patient", "pat_1", "Ada Schmidt"),)
RAW = re.compile(r"[a-z]_[a-z]|console\.|command\.")
# From the one who acts, in the past tense: the participle ends a German sentence.
FORMS = {
    "en": re.compile(r"%\(actor\)s [a-z].*"),
    "de": re.compile(r"%\(actor\)s hat .*[a-zäöü](?:t|en)"),
    "es": re.compile(r"%\(actor\)s [a-zñ]+[óo]\b.*"),
}


def line(operation: str, outcome: str = "executed", *, names: bool) -> Line:
    record: Mapping[str, object] = {"operation": operation, "outcome": outcome, "at": datetime(2026, 1, 1, tzinfo=UTC)}
    return Line(record, Actor("stf_1", "Empfang Eins", "staff"), ABOUT if names else ())


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_operation_and_action_has_a_whole_sentence_in_every_language(language: str) -> None:
    for name, each in recorded().items():
        assert each.audit is not None, name
        for names in (False, True):
            with use_language(SOURCE):
                source = audit_sentence(line(name, names=names))
            with use_language(language):
                sentence = audit_sentence(line(name, names=names))
            placeholders = {"%(actor)s", "%(names)s"} if names and each.audit.with_names else {"%(actor)s"}
            assert set(re.findall(r"%\(\w+\)s", sentence)) == placeholders, sentence
            assert FORMS[language].fullmatch(sentence), sentence
            assert (sentence == source) == (language == SOURCE), f"not translated: {sentence}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_record_shows_the_raw_name_of_its_operation_in_any_language(language: str) -> None:
    with use_language(language):
        for name in recorded():
            for outcome in OUTCOMES:
                for names in (False, True):
                    values = {"actor": "A", "names": "B", "title": operation_title(name)}
                    assert not RAW.search(audit_sentence(line(name, outcome, names=names)) % values), (name, outcome)


def test_sentences_with_names_read_well_in_german_and_spanish() -> None:
    values = {"actor": "Empfang Eins", "names": "Ada Schmidt"}
    expected = {
        "cancel_appointment": (
            "Empfang Eins hat einen Termin von Ada Schmidt abgesagt",
            "Empfang Eins canceló una cita de Ada Schmidt",
        ),
        "console.add_note": (
            "Empfang Eins hat eine Notiz zu Ada Schmidt hinzugefügt",
            "Empfang Eins agregó una nota sobre Ada Schmidt",
        ),
        "console.restore_appointment": (
            "Empfang Eins hat eine Statusänderung eines Termins von Ada Schmidt zurückgenommen",
            "Empfang Eins deshizo un cambio de estado de una cita de Ada Schmidt",
        ),
    }
    for name, sentences in expected.items():
        for language, sentence in zip(("de", "es"), sentences, strict=True):
            with use_language(language):
                assert audit_sentence(line(name, names=True)) % values == sentence
