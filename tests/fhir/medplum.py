"""A FHIR server that nobody here wrote: Medplum's packages, installed once outside the repository, run by Node."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.fhir.door import Answer

HERE = Path(__file__).parent


def installed() -> Path:
    """The folder with the packages, installed if need be; several test processes may ask at once."""
    manifest = (HERE / "package.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "frontdesk-tests"
    folder = cache / f"fhir-{hashlib.sha256(manifest).hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            (folder / "package.json").write_bytes(manifest)
            command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
            subprocess.run(command, cwd=folder, check=True, timeout=240, stdout=subprocess.DEVNULL)
            (folder / "ready").touch()
        shutil.copy(HERE / "server.mjs", folder / "server.mjs")
    return folder


class Medplum:
    """The running server; every name has a repository of its own."""

    def __init__(self, address: str) -> None:
        self._address = address

    def repository(self, name: str, public_base: str) -> "Repository":
        return Repository(self._address, name, public_base)


class Repository:
    """Answers requests of one test."""

    def __init__(self, address: str, name: str, public_base: str) -> None:
        self._http = httpx.AsyncClient(base_url=address, timeout=30, trust_env=False)
        self._name = name
        self._public_base = public_base

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        kept = {name: value for name, value in headers.items() if name.startswith(("if-", "content-type", "prefer"))}
        kept["x-public-base"] = self._public_base
        answer = await self._http.request(method, f"/{self._name}{target}", content=body, headers=kept)
        shown = {name: value for name, value in answer.headers.items() if name in ("content-type", "etag")}
        return Answer(answer.status_code, shown, answer.content)

    async def close(self) -> None:
        await self._http.aclose()


@contextmanager
def running() -> Iterator[Medplum]:
    command = ["node", "server.mjs"]
    with subprocess.Popen(command, cwd=installed(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert line.startswith("listening on "), line
        yield Medplum(f"http://127.0.0.1:{line.split()[-1]}")
        process.stdin.close()  # it ends by itself then
        process.wait(20)
