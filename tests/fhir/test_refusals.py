"""What a caller is told when the FHIR server declines a write."""

import logging
from typing import Any

import pytest

from frontdesk.systems.fhir.writing import steps
from tests.fhir.calls import ZAPHOD, booking, challenged
from tests.fhir.door import Answer, Request
from tests.fhir.misbehaving import Refusing
from tests.fhir.practice import Upstream
from tests.support.world import World, book, confirmed, patient_id, slots

RULE = "A rule of the practice's scheduling system does not allow this."
QUOTED = "Ada Q. LOVELACE (10 Dec 1985, MRN 4711, 555-0199) has an HIV test in the slot of Grace Hopper"


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "RETRY_SECONDS", 0.0)


@pytest.mark.parametrize(
    ("status", "code", "detail"),
    [
        (409, "upstream_unavailable", None),  # nobody is seen who would have been faster
        (412, "upstream_unavailable", None),
        (422, "validation", RULE),
        (400, "validation", RULE),
        (200, "validation", RULE),  # it says success, and that it did nothing
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


async def test_an_appointment_of_several_patients_is_not_changed_for_one(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    path = f"/api/appointments/{await book(agent)}"
    [alone] = await upstream.live_appointments()
    grace = {"actor": {"reference": "Patient/grace"}, "status": "needs-action"}
    together = await upstream.put({**alone, "participant": [*alone["participant"], grace]})
    for change, body in (
        ("confirm", {}),
        ("reschedule", {"slotId": (await slots(agent))[5]["id"]}),
        ("cancel", {}),
    ):
        refused = await agent.post(f"{path}/{change}", json=body)  # before a challenge
        assert (refused.status_code, refused.json()["code"]) == (422, "validation"), change
        assert "Other patients" in refused.json()["detail"]
    assert await upstream.live_appointments() == [together]
    declined = [*alone["participant"], {**grace, "status": "declined"}]
    await upstream.put({**together, "participant": declined})
    assert (await confirmed(agent, "POST", f"{path}/cancel", {})).status_code == 200


@pytest.mark.parametrize(
    "members",
    [{"active": False}, {"link": [{"type": "replaced-by", "other": {"reference": "Patient/grace"}}]}],
    ids=["closed", "merged"],
)
async def test_nothing_is_booked_for_a_record_that_was_merged_or_closed(
    fhir: World, upstream: Upstream, members: dict[str, Any]
) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/appointments", await booking(agent))
    await upstream.put({**await upstream.read("Patient/ada"), **members})
    refused = await agent.post("/api/appointments", json=body)
    assert (refused.status_code, refused.json().get("code")) == (404, "not_found"), refused.text
    assert await upstream.live_appointments() == []


async def test_a_person_is_on_file_only_if_somebody_matches(fhir: World, upstream: Upstream) -> None:
    agent = await fhir.client()
    body = await challenged(agent, "/api/patients", ZAPHOD)
    inner = upstream.door.backend
    upstream.door.backend = Refusing(inner, 409, "A duplicate", "Patient")
    refused = await agent.post("/api/patients", json=body)
    assert (refused.status_code, refused.json()["code"]) == (502, "upstream_unavailable")
    again = await agent.post("/api/patients", json=body)
    assert again.json()["code"] == "upstream_unavailable"
    name = [{"family": ZAPHOD["lastName"], "given": [ZAPHOD["firstName"]]}]
    telecom = [{"system": "phone", "value": ZAPHOD["phone"]}]

    async def faster(request: Request, answer: Answer) -> Answer:
        if request.method == "POST":
            upstream.door.rewrite = None
            person = {"resourceType": "Patient", "active": True, "birthDate": ZAPHOD["dob"]}
            upstream.door.backend = inner
            await upstream.create({**person, "name": name, "telecom": telecom})
        return answer

    upstream.door.rewrite = faster
    known = await agent.post("/api/patients", json=body)
    assert (known.status_code, known.json()["code"]) == (409, "conflict")


@pytest.mark.parametrize("status", [422, 200])
@pytest.mark.parametrize("action", ["book", "reschedule", "cancel", "create", "update"])
async def test_the_text_of_a_refusal_reaches_no_caller_log_or_audit_record(
    fhir: World, upstream: Upstream, caplog: pytest.LogCaptureFixture, action: str, status: int
) -> None:
    """It may quote data of any patient, in any form, that the request did not contain."""
    agent = await fhir.client()
    if action == "create":
        path, method, body = "/api/patients", "POST", dict(ZAPHOD)
    elif action == "update":
        path, method = f"/api/patients/{await patient_id(agent)}", "PATCH"
        body = {"email": "ada@example.com"}
    elif action == "book":
        path, method, body = "/api/appointments", "POST", await booking(agent)
    else:
        path, method, body = f"/api/appointments/{await book(agent)}/{action}", "POST", {}
        if action == "reschedule":
            body = {"slotId": (await slots(agent))[3]["id"]}
    body = await challenged(agent, path, body, method)
    kind = "Patient" if action in ("create", "update") else "Appointment"
    sent = "POST" if action in ("create", "book") else "PUT"
    upstream.door.backend = Refusing(upstream.door.backend, status, QUOTED, kind, sent)
    with caplog.at_level(logging.DEBUG):
        refused = await agent.request(method, path, json=body)
    problem = refused.json()
    assert (refused.status_code, problem["code"], problem["detail"]) == (422, "validation", RULE)
    assert problem["errors"] == [{"field": "$", "rule": "declined", "message": RULE}]
    logged = repr([record.__dict__ for record in caplog.records if record.name.startswith("frontdesk")])
    async with fhir.database.transaction(1) as connection:
        audited = repr(await connection.fetch("SELECT * FROM audit_record WHERE practice_id = 1"))
    assert "validation" in audited
    for word in ("lovelace", "dec 1985", "mrn 4711", "555-0199", "hiv test", "hopper"):
        assert word not in (refused.text + logged + audited).lower(), word
