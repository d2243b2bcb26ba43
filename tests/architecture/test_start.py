"""What a service does not import to start. Each of these takes long, and most installations never need it."""

import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
ONLY_WHEN_USED = {
    "frontdesk.access.staff.identity_provider",
    "frontdesk.doors.docs.guide_pages",
    "frontdesk.doors.openapi",
    "frontdesk.practice_file.model",
    "frontdesk.systems.fhir.transport.client",
    "httpx",
    "icalendar",
    "jinja2",
    "markdown_it",
    "opentelemetry",
    "prometheus_client",
    "webauthn",
    "yaml",
}


def test_a_service_starts_without_what_few_of_them_use() -> None:
    program = "import sys, frontdesk.serving.lifespan, frontdesk.serving.http_server; print(*sys.modules, sep='\\n')"
    imported = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "frontdesk.app" in imported
    assert ONLY_WHEN_USED.isdisjoint(imported), ONLY_WHEN_USED.intersection(imported)
