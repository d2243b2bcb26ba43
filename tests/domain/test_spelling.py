"""Suggestions for misspelt names: typos get one, other words none."""

import pytest

from frontdesk.access.clients.scopes import every_scope
from frontdesk.domain.spelling import closest
from frontdesk.outbound.webhooks.events import event_types

KNOWN = (*every_scope(), *event_types(), "harbor", "riverside")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("harbour", "harbor"),
        ("riversid", "riverside"),
        ("slot:read", "slots:read"),
        ("Slots:Read", "slots:read"),
        ("appointment.boked", "appointment.booked"),
    ],
)
def test_a_typo_is_told_what_was_meant(word: str, meant: str) -> None:
    assert closest(word, KNOWN) == f"; the closest is {meant!r}"


@pytest.mark.parametrize("word", ["bogus", "x", "", "everything"])
def test_a_word_that_is_like_no_known_name_gets_no_suggestion(word: str) -> None:
    assert closest(word, KNOWN) == ""
