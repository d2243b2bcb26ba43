"""Commands in this process, on a test's database: a process of their own takes a second."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from frontdesk.cli import main
from tests.support.shared_database import as_owner
from tests.support.world import World


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Awaitable[Ended]]


@pytest.fixture
def command(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Runs a command against the world's database, with the world's secret key."""
    monkeypatch.setenv("FRONTDESK_DATA_DIR", str(world.service.settings.data_dir))
    monkeypatch.setenv("FRONTDESK_DATABASE_URL", world.database.dsn)
    monkeypatch.setenv("FRONTDESK_MIGRATION_DATABASE_URL", as_owner(world.database.dsn))

    async def run(*words: str) -> Ended:
        capsys.readouterr()
        status = await asyncio.to_thread(main, words)
        shown = capsys.readouterr()
        return Ended(status, shown.out, shown.err)

    return run
