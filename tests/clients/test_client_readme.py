"""The quick start does what it says, as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import frontdesk_client
import pytest

from tests.clients.running_desk import Desk

SOURCE = Path(frontdesk_client.__file__).parent.parent
README = SOURCE.parent / "README.md"


@pytest.mark.parametrize(("answer", "ending"), [("no", r"\?\n\Z"), ("yes", r"\?\nBooked: apt_\w{22}\n\Z")])
def test_the_quick_start_runs_as_it_stands(desk: Desk, answer: str, ending: str) -> None:
    (quick_start, *_) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "DESK_URL": desk.url,
        "DESK_CLIENT_ID": desk.agent.client_id,
        "DESK_CLIENT_SECRET": desk.agent.client_secret,
        "ANSWER": answer,
    }
    done = subprocess.run(
        [sys.executable, "-c", quick_start], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert re.search(ending, done.stdout), done.stdout
