"""Documents of records: their keys are part of the command line's contract."""

from datetime import UTC, datetime
from typing import Any

import pytest

from frontdesk.access.clients.records import AccessLimits, ClientRecord, SecretRecord
from frontdesk.access.keys.ring import KeyRecord
from frontdesk.cli.output import to_document
from frontdesk.store.practices import PracticeSummary

MADE = datetime(2026, 11, 16, 9, 30, 15, 999, tzinfo=UTC)


@pytest.mark.parametrize(
    ("record", "document"),
    [
        (
            ClientRecord(
                "fd_1",
                "harbor",
                "Bot",
                "agent",
                ("slots.read",),
                60,
                900,
                AccessLimits(30, None, 5, True, upcoming_per_patient=7),
                False,
                MADE,
                (SecretRecord(MADE, None),),
            ),
            {
                "clientId": "fd_1",
                "practice": "harbor",
                "name": "Bot",
                "grant": "agent",
                "scopes": ["slots.read"],
                "perMinute": 60,
                "quota": 900,
                "accessLimits": {
                    "patientsPerHour": 30,
                    "patientsPerDay": None,
                    "matchMisses": 5,
                    "knownPatientsOnly": True,
                    "writesPerHour": None,
                    "upcomingPerPatient": 7,
                },
                "disabled": False,
                "createdAt": "2026-11-16T09:30:15Z",
                "secrets": [{"createdAt": "2026-11-16T09:30:15Z", "retiresAt": None}],
                "tokensNotBefore": None,
                "keyIds": [],
                "jwksUrl": None,
                "staffId": None,
                "revokedAt": None,
                "trustedToAsk": False,
            },
        ),
        (
            KeyRecord("k1", "tokens", MADE, None),
            {"keyId": "k1", "purpose": "tokens", "createdAt": "2026-11-16T09:30:15Z", "retiredAt": None},
        ),
        (
            PracticeSummary(1, "harbor", "Harbor", "UTC", "native", False, True, 1, 2, 3, 4),
            {
                "slug": "harbor",
                "name": "Harbor",
                "timeZone": "UTC",
                "schedulingSystem": "native",
                "sandbox": False,
                "suspended": True,
                "locations": 1,
                "providers": 2,
                "patients": 3,
                "clients": 4,
            },
        ),
    ],
)
def test_a_record_is_printed_with_these_keys_and_no_others(record: object, document: dict[str, Any]) -> None:
    assert list(to_document(record).items()) == list(document.items())
