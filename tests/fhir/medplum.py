"""A FHIR server that nobody here wrote: Medplum's packages, installed once outside the repository, run by Node."""

import asyncio
import atexit
import fcntl
import hashlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.fhir.door import Answer

HERE = Path(__file__).parent


class Medplum:
    """The running server; every name has a repository of its own."""

    def __init__(self, port: int) -> None:
        self._port = port

    def repository(self, name: str, public_base: str) -> "Repository":
        return Repository(self._port, name, public_base)


Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Repository:
    """Answers requests of one test. It speaks HTTP itself: a client library would cost more than all the rest."""

    def __init__(self, port: int, name: str, public_base: str) -> None:
        self._port = port
        self._name = name
        self._public_base = public_base
        self._idle: list[Connection] = []

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        kept = {name: value for name, value in headers.items() if name.startswith(("if-", "content-type", "prefer"))}
        kept |= {"host": "localhost", "x-public-base": self._public_base, "content-length": str(len(body))}
        lines = [f"{method} /{self._name}{target} HTTP/1.1", *(f"{name}: {value}" for name, value in kept.items())]
        reader, writer = self._idle.pop() if self._idle else await self._connected()
        try:
            writer.write("\r\n".join((*lines, "", "")).encode() + body)
            answer = await _answer(reader)
        except BaseException:
            writer.close()
            raise
        self._idle.append((reader, writer))
        return answer

    async def _connected(self) -> Connection:
        return await asyncio.open_connection("127.0.0.1", self._port, limit=2**20)

    async def close(self) -> None:
        for _, writer in self._idle:
            writer.close()
            await writer.wait_closed()


async def _answer(reader: asyncio.StreamReader) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers["content-length"]))
    shown = {name: value for name, value in headers.items() if name in ("content-type", "etag")}
    return Answer(int(status.split(" ")[1]), shown, body)


@cache
def medplum() -> Medplum:
    """The server of this test process. It ends with it, however that ends: it watches its standard input."""
    command = ["node", str(beside_packages(HERE / "server.mjs"))]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    assert line.startswith("listening on "), line
    atexit.register(_end, process)
    return Medplum(int(line.split()[-1]))


def _end(process: subprocess.Popen[bytes]) -> None:
    process.communicate(timeout=20)  # closes its standard input


def beside_packages(script: Path) -> Path:
    """A script beside Medplum's packages, installed if need be; several test processes may ask at once."""
    lock_file, program = HERE / "package-lock.json", script.read_bytes()
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "frontdesk-tests"
    folder = home / f"fhir-{hashlib.sha256(lock_file.read_bytes()).hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f"{script.stem}-{hashlib.sha256(program).hexdigest()[:16]}.mjs"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            for path in (HERE / "package.json", lock_file):
                shutil.copy(path, folder)
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            done = subprocess.run(command, cwd=folder, timeout=240, capture_output=True)
            assert done.returncode == 0, f"npm could not install the server's packages:\n{done.stderr[-2000:].decode()}"
            (folder / "ready").touch()
        beside.write_bytes(program)
    return beside
