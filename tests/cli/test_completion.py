"""The completion script, asked by a real bash."""

import subprocess
from pathlib import Path

import pytest

from frontdesk.cli import main

ASK = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_frontdesk
echo "${COMPREPLY[*]}"
"""


def test_commands_options_and_choices_are_completed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "frontdesk.bash"
    script.write_text(capsys.readouterr().out)

    def offered(*words: str) -> set[str]:
        asked = subprocess.run(
            ["bash", "-c", ASK, "bash", script, "frontdesk", *words], capture_output=True, text=True, check=True
        )
        assert asked.stderr == ""
        return set(asked.stdout.split())

    assert offered("pra") == {"practice"}
    assert {"init", "import", "remove"} <= offered("practice", "")
    assert offered("practice", "import", "file.yaml", "--dr") == {"--dry-run"}
    assert offered("practice", "import", "--stranded", "") == {"refuse", "keep", "cancel"}
    assert offered("client", "set-s") == {"set-scopes"}
    assert offered("client", "list", "--practice", "practice", "--js") == {"--json"}, "a value is no command"
    assert main(["completion", "zsh"]) == 0
    assert capsys.readouterr().out == f"autoload -U +X bashcompinit && bashcompinit\n{script.read_text()}"
