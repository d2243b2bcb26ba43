"""The threat model names the test of every defence, and every test it names is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_every_threat_names_tests_that_exist() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| threat")]
    assert len(rows) > 20
    for row in rows:
        threat, _, tests = (cell.strip() for cell in row.strip("| ").split(" | "))
        named = re.findall(r"`([^`]+)`", tests)
        assert named, threat
        for name in named:
            assert name.startswith("make ") or (ROOT / "tests" / name).exists(), f"{threat}: {name}"


def test_every_risk_of_the_list_is_met() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text()
    for number in range(1, 11):
        assert f"| A{number} " in text or f"| A{number}, " in text
