"""Somebody who reads the guides: what they paste runs in one folder, against a demo service of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path

import pytest

from tests.crash.harness import Clinic

ROOT = Path(__file__).parents[2]
METRICS_TOKEN = "metrics-token-of-the-guides"
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
FENCE = re.compile(r"^```([^\n]+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Snippet:
    language: str
    reason: str | None  # why it is not run
    text: str


def snippets(guide: str) -> list[Snippet]:
    text = (files("frontdesk.doors.docs") / "guides" / f"{guide}.md").read_text()
    assert text.count("```") == 2 * len(FENCE.findall(text)), f"{guide} has a block without a language"
    found = []
    for info, body in FENCE.findall(text):
        language, _, mark = info.partition(" ")
        assert not mark or mark.startswith("no-run: "), f"{guide}: {info}"
        found.append(Snippet(language, mark.removeprefix("no-run: ") or None, body))
    return found


def script_of(guide: str) -> str:
    """The page as one session of a shell: programs run and files are saved where they stand."""
    parts = []
    for each in snippets(guide):
        if each.reason is not None:
            continue
        if each.language == "bash":
            parts.append(each.text)
        elif each.language == "python":
            parts.append(f".venv/bin/python - <<'END_OF_PROGRAM'\n{each.text}END_OF_PROGRAM\n")
        elif each.language == "yaml":
            parts.append(f"cat > practice.yaml <<'END_OF_FILE'\n{each.text}END_OF_FILE\n")
    return "\n".join(parts)


def start_demo(folder: Path) -> Clinic:
    clinic = Clinic(folder)
    clinic.environment["FRONTDESK_DATA_DIR"] = str(folder / ".frontdesk")
    clinic.environment["FRONTDESK_METRICS_TOKEN"] = METRICS_TOKEN
    clinic.start("--demo")
    _close_today_and_tomorrow(clinic)
    return clinic


def _close_today_and_tomorrow(clinic: Clinic) -> None:
    """So that the first open time neither comes too close while somebody pastes, nor lies on another day than what a
    search from tomorrow on finds first, whatever the hour and the weekday."""
    today = datetime.now(UTC).date()
    closed = {"from": str(today - timedelta(days=1)), "to": str(today + timedelta(days=1)), "reason": "Holidays"}
    practice = clinic.command("practice", "export", "demo")
    for location in practice["locations"]:
        location["closures"] = [*location.get("closures", ()), closed]
    path = clinic.folder / "closed.json"
    path.write_text(json.dumps(practice))
    clinic.command("practice", "import", str(path))


def paste(demo: Clinic, script: str) -> str:
    """Runs it as it stands in a guide, but for the port and the places of programs."""
    for written, here in (
        ("http://127.0.0.1:8080", demo.url),
        (".venv/bin/", f"{Path(sys.executable).parent}/"),
        ("examples/", f"{ROOT}/examples/"),
    ):
        script = script.replace(written, here)
    if os.geteuid() == 0:  # the service should not run like that, says doctor
        script = script.replace("frontdesk doctor\n", "frontdesk doctor || [ $? = 1 ]\n")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FRONTDESK_")}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=demo.folder,
        env={
            **inherited,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "FRONTDESK_BASE_URL": demo.url,
            "FRONTDESK_PORT": str(demo.port),
            "FRONTDESK_METRICS_TOKEN": METRICS_TOKEN,
            "PYTHONPATH": str(ROOT / "clients" / "python" / "src"),
        },
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
