"""The quick start does what it says."""

import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import frontdesk_client
import pytest

from tests.clients.running_desk import NEXT_WEEK, Desk

SOURCE = Path(frontdesk_client.__file__).parent.parent
README = SOURCE.parent / "README.md"
LATER = NEXT_WEEK + timedelta(weeks=4)  # when no other test books for the same patient


@pytest.mark.parametrize(("answer", "ending"), [("no", r"\?\n\Z"), ("yes", r"\?\nBooked: apt_\w{22}\n\Z")])
def test_the_quick_start_runs(desk: Desk, answer: str, ending: str) -> None:
    (quick_start, *_) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert "limit=3\n" in quick_start
    # The next slots of today may all come too close to be booked in a moment.
    quick_start = quick_start.replace("limit=3\n", f"limit=3, from_=date.fromisoformat('{LATER}')\n")
    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "URL": desk.url,
        "CLIENT_ID": desk.agent.client_id,
        "CLIENT_SECRET": desk.agent.client_secret,
        "ANSWER": answer,
    }
    for _ in range(2):  # the second time the first slot is taken
        done = subprocess.run(
            [sys.executable, "-c", quick_start], env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert re.search(ending, done.stdout), done.stdout
