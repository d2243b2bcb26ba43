"""The command on a data directory of the test's: `run` in a fork of a preloaded process, `serving` as installed."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from frontdesk.store.embedded.server import OWNER_ROLE, EmbeddedPostgres
from tests.cli.preloaded import preloaded
from tests.support.ports import free_port
from tests.support.stopping import NO_DRAIN

COMMAND = str(Path(sys.executable).parent / "frontdesk")


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str


@dataclass(frozen=True)
class CommandLine:
    data_dir: Path

    def environment(self, **settings: str) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("FRONTDESK_")}
        return {**inherited, "FRONTDESK_DATA_DIR": str(self.data_dir), **NO_DRAIN, **settings}

    def run(self, *words: str, stdin: str = "", **settings: str) -> Done:
        return Done(*preloaded().run(words, stdin, self.environment(**settings), timeout=120))

    def json(self, *words: str, stdin: str = "", **settings: str) -> Any:
        """The document that a command prints when all is well: it, and nothing else."""
        done = self.run(*words, "--json", stdin=stdin, **settings)
        assert (done.status, done.err) == (0, ""), done
        return json.loads(done.out)

    @contextlib.contextmanager
    def serving(self, *words: str, **settings: str) -> Iterator["Served"]:
        """A server that is ready, until the block ends; then it is told to stop, if the test has not done so."""
        process = subprocess.Popen(
            [COMMAND, "serve", "--json", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=self.environment(**{"FRONTDESK_PORT": str(free_port()), **settings}),
            start_new_session=True,  # so that a test can reach the workers too
        )
        with process:
            served = Served(process, _first_document(process))
            try:
                yield served
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                    process.communicate(timeout=30)


@dataclass(frozen=True)
class Served:
    process: subprocess.Popen[str]
    document: Any

    @property
    def url(self) -> str:
        url: str = self.document["url"]
        return url

    def stop(self, signal_number: int) -> Done:
        self.process.send_signal(signal_number)
        out, err = self.process.communicate(timeout=30)
        return Done(self.process.returncode, out, err)

    def client(self, grant: str = "agent") -> httpx.Client:
        """Calls the API as one of the demo's clients."""
        credentials = self.document["demo"][grant]
        form = {"client_id": credentials["clientId"], "client_secret": credentials["clientSecret"]}
        token = httpx.post(
            f"{self.url}/oauth/token", data={"grant_type": "client_credentials", **form}, timeout=30
        ).json()
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {token['access_token']}"}, timeout=30)


def owner_dsn(line: CommandLine, database: str = "frontdesk") -> str:
    return EmbeddedPostgres(line.data_dir / "postgres").dsn(OWNER_ROLE).replace("/frontdesk?", f"/{database}?")


def create_database(line: CommandLine, name: str) -> None:
    """Another database, of a server that lets the superuser in."""

    async def create() -> None:
        connection = await asyncpg.connect(EmbeddedPostgres(line.data_dir / "postgres").dsn("postgres"))
        await connection.execute(f"CREATE DATABASE {name} OWNER {OWNER_ROLE}")
        await connection.close()

    asyncio.run(create())


def on_database(line: CommandLine, work: Callable[[Any], Awaitable[Any]], database: str = "frontdesk") -> Any:
    """Work behind the command's back, with the owner's rights, on a database that is up."""

    async def connected() -> Any:
        connection = await asyncpg.connect(owner_dsn(line, database), server_settings={"search_path": "frontdesk"})
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(connected())


def _first_document(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if line == "}\n":
            document = json.loads(text)
            assert "url" in document, document
            return document
    raise AssertionError(f"the server ended: {process.communicate()}")
