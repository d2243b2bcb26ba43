"""What the alert rules watch is also found by `frontdesk doctor`."""

from typing import Any

import pytest

from frontdesk.cli import alert_checks
from frontdesk.settings import Settings
from frontdesk.store.queues import QUEUES

NOTHING = {(name, state): 0.0 for name, queue in QUEUES.items() for state in queue.states}
METRICS = """
# TYPE frontdesk_background_failures gauge
frontdesk_background_failures{step="webhooks"} 0.0
frontdesk_background_failures{step="audit sealing"} %s
frontdesk_database_connections{state="busy"} %s
frontdesk_database_connections{state="idle"} 1.0
frontdesk_audit_altered_trails %s
"""


@pytest.mark.parametrize(
    ("check", "waiting", "state", "detail"),
    [
        ("audit", {"audit_unsealed_records": 3.0, "audit_unsealed_seconds": 170.0}, "ok", "3 records not sealed yet"),
        ("audit", {"audit_unsealed_records": 1.0, "audit_unsealed_seconds": 190.0}, "warning", "1 record not sealed"),
        ("webhooks", {}, "skipped", "no endpoints"),
        (
            "webhooks",
            {"webhook_endpoints failing": 1.0, "webhook_endpoints working": 2.0},
            "ok",
            "2 working, 1 failing",
        ),
        ("webhooks", {"webhook_endpoints stopped": 1.0}, "ok", "1 stopped"),
        ("webhooks", {"webhook_endpoints paused": 2.0}, "warning", "2 endpoints paused because of failures"),
        (
            "webhooks",
            {"webhook_endpoints working": 1.0, "outbox_events": 5.0, "outbox_seconds": 420.0},
            "warning",
            "5 events not handed over for 7 minutes",
        ),
        (
            "webhooks",
            {"webhook_endpoints working": 1.0, "webhook_overdue_seconds": 1200.0},
            "warning",
            "the next delivery has been due for 20 minutes",
        ),
        ("upstream_writes", {"upstream_writes leased": 1.0, "upstream_write_seconds": 5.0}, "ok", "1 write to FHIR"),
        (
            "upstream_writes",
            {"upstream_writes waiting": 2.0, "upstream_write_seconds": 660.0},
            "warning",
            "2 writes not settled for 11 minutes",
        ),
        ("upstream_writes", {"upstream_misconfigured_practices": 1.0}, "warning", "1 practice to be corrected"),
    ],
)
def test_what_waits_too_long_is_found(check: str, waiting: dict[str, float], state: str, detail: str) -> None:
    measured = NOTHING | {(name.partition(" ")[0], name.partition(" ")[2]): value for name, value in waiting.items()}
    assert measured.keys() == NOTHING.keys()
    found: tuple[str, str] = getattr(alert_checks, check)(measured)
    assert found[0] == state
    assert detail in found[1]


@pytest.mark.parametrize(
    ("answer", "state", "detail"),
    [
        (None, "skipped", "does not run here"),
        ((401, ""), "failed", "answers 401"),
        ((200, METRICS % (0, 3, 0)), "ok", "nothing unusual"),
        ((200, METRICS % (12, 3, 0)), "failed", "background work fails: audit sealing"),
        ((200, METRICS % (0, 15, 0)), "warning", "FRONTDESK_DATABASE_POOL_SIZE"),
        ((200, METRICS % (0, 3, 1)), "failed", "an audit trail was altered"),
    ],
)
def test_what_the_service_reports_is_judged(
    answer: tuple[int, str] | None, state: str, detail: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(alert_checks, "ask_service", lambda *_: answer)
    found = alert_checks.metrics(Settings(data_dir=tmp_path, metrics_token="a token for the scraper"))
    assert found[0] == state
    assert detail in found[1]
    assert alert_checks.metrics(Settings(data_dir=tmp_path))[0] == "skipped"
