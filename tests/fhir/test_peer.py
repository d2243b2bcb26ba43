"""The server that nobody here wrote checks what it is sent: what it stores from us is valid R4."""

import json
from typing import Any

import pytest

from tests.fhir.medplum import medplum

pytestmark = pytest.mark.heavy

APPOINTMENT: dict[str, Any] = {
    "resourceType": "Appointment",
    "status": "booked",
    "start": "2026-11-16T14:00:00Z",
    "end": "2026-11-16T14:15:00Z",
    "participant": [{"actor": {"reference": "Patient/1"}, "status": "accepted"}],
}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 201),
        ({"participant": []}, 400),
        ({"end": None}, 400),
        ({"status": ["booked"]}, 400),
        ({"cancelationReason": {"text": "no"}}, 400),
        ({"frontdesk": "x"}, 400),
    ],
)
async def test_the_peer_refuses_what_is_not_r4(change: dict[str, Any], status: int) -> None:
    repository = medplum().repository("peer", "http://peer")
    body = {key: value for key, value in {**APPOINTMENT, **change}.items() if value is not None}
    headers = {"content-type": "application/fhir+json"}
    answer = await repository.answer("POST", "/Appointment", headers, json.dumps(body).encode())
    await repository.close()
    assert answer.status == status, answer.body
