"""A FHIR server that says no: what the caller hears of it."""

import pytest

from tests.fhir.calls import ZAPHOD, booking, challenged
from tests.fhir.misbehaving import Refusing
from tests.fhir.practice import Upstream
from tests.world import World


@pytest.mark.parametrize(
    ("status", "code", "detail"),
    [
        (409, "slot_unavailable", None),
        (412, "slot_unavailable", None),
        (422, "validation", "The practitioner is on leave."),
        (400, "validation", "The practitioner is on leave."),
        (200, "validation", "The practitioner is on leave."),  # it says success, and that it did nothing
    ],
)
async def test_a_booking_that_the_server_declines_is_told(
    fhir: World, upstream: Upstream, status: int, code: str, detail: str | None
) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    inner = upstream.door.backend
    upstream.door.backend = Refusing(inner, status, "The practitioner\nis on leave.")
    refused = await agent.post("/api/appointments", json=body)
    assert refused.json()["code"] == code
    if detail is not None:
        assert refused.json()["detail"] == detail
        assert refused.json()["errors"] == [{"field": "$", "rule": "declined", "message": detail}]
    upstream.door.backend = inner
    assert await upstream.busy_slots() == set()
    answer = await agent.post("/api/appointments", json=body)
    assert answer.status_code == 201, "the token stays valid"


async def test_a_person_whom_the_server_has_already_is_a_conflict(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/patients", ZAPHOD)
    upstream.door.backend = Refusing(upstream.door.backend, 409, "A duplicate", "Patient")
    refused = await agent.post("/api/patients", json=body)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")


async def test_a_refusal_never_repeats_what_was_said_about_a_person(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/patients", ZAPHOD)
    text = "Zaphod BEEBLEBROX, born 1978-08-26, is not eligible"
    upstream.door.backend = Refusing(upstream.door.backend, 422, text, "Patient")
    refused = await agent.post("/api/patients", json=body)
    assert refused.status_code == 422
    assert refused.json()["detail"] == "… …, born …, is not eligible"
