"""The threat model names the tests of every defence, and every test it names is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "docs" / "threat-model.md").read_text()


def test_every_attack_names_tests_that_exist() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| attack ")]
    assert len(rows) > 100
    for row in rows:
        attack, _, tests = (cell.strip() for cell in row.strip("| ").split(" | "))
        named = re.findall(r"`([^`]+)`", tests)
        assert named, attack
        for name in named:
            assert name.startswith("make ") or (ROOT / "tests" / name).exists(), f"{attack}: {name}"


def test_every_attack_is_listed_under_one_feature() -> None:
    tables = re.findall(r"^## (.+)\n\n(?:[^#|].*\n+)*\| attack \| defence \| tests \|\n", TEXT, re.MULTILINE)
    assert len(tables) == TEXT.count("| attack | defence | tests |\n") == len(set(tables)) > 10
    attacks = re.findall(r"^\| (.+?) \| .+ \| `", TEXT, re.MULTILINE)
    assert len(attacks) == len(set(attacks))


def test_every_risk_of_the_list_is_met() -> None:
    for number in range(1, 11):
        assert f"| A{number} " in TEXT or f"| A{number}, " in TEXT
