"""The pinned Node programs of node/package.json: installed once, outside the repository, and checked by hash."""

import asyncio
import contextlib
import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

_PINNED = Path(__file__).parent / "node"
_INSTALL_SECONDS, _RUN_SECONDS = 600.0, 240.0
_INSTALLS = 3
# Programs for this machine's processor. npm leaves out what it cannot download of them, and succeeds.
CLAUDE_CODE, OPENCODE = "@anthropic-ai/claude-code-linux-*/claude", "opencode-linux-*/bin/opencode"


@dataclass(frozen=True)
class Finished:
    status: int
    output: str
    errors: str

    def json(self) -> Any:
        assert self.output, self.errors
        return orjson.loads(self.output)


@dataclass(frozen=True)
class NodeClients:
    modules: Path
    node: str

    async def run(self, program: str | Path, *arguments: str, home: Path) -> Finished:
        """Runs a program of the installed packages, or a file of ours that uses them. It writes only to `home`."""
        return await self.run_in({**os.environ, "HOME": str(home), "NO_COLOR": "1"}, program, *arguments, home=home)

    async def run_in(self, environment: dict[str, str], program: str | Path, *arguments: str, home: Path) -> Finished:
        return await _finished([*self.command(program), *arguments], _RUN_SECONDS, environment, home)

    def command(self, program: str | Path) -> list[str]:
        path = self.modules / program
        return [self.node, str(path)] if path.suffix else [str(path)]

    def native(self, pattern: str) -> Path:
        return next(self.modules.glob(pattern))


async def node_clients() -> NodeClients:
    """Raises with the reason where the programs cannot be had."""
    lock = (_PINNED / "package-lock.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "frontdesk"
    home = cache / f"mcp-clients-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not home.exists():
        await _install(home)
    bundled = next(home.glob("node_modules/node-linux-*/bin/node"), None)  # that of this machine's processor
    return NodeClients(home / "node_modules", str(bundled or _found("node")))


async def _install(home: Path) -> None:
    npm = _found("npm")
    home.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix="mcp-clients-", dir=home.parent))
    try:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(_PINNED / name, unfinished)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        for _ in range(_INSTALLS):
            done = await _finished(command, _INSTALL_SECONDS, dict(os.environ), unfinished)
            found = [any(unfinished.glob(f"node_modules/{each}")) for each in (CLAUDE_CODE, OPENCODE)]
            if done.status == 0 and all(found):
                break
        else:
            raise AssertionError(f"npm could not install the pinned clients:\n{done.errors[-2000:]}")
        with contextlib.suppress(FileExistsError, OSError):
            unfinished.rename(home)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    assert home.exists()


def _found(program: str) -> str:
    path = shutil.which(program)
    assert path is not None, f"these tests need {program}, from Node 22 or newer"
    return path


async def _finished(command: list[str], seconds: float, environment: dict[str, str], folder: Path) -> Finished:
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, cwd=folder, stdin=nothing, stdout=pipe, stderr=pipe
    )
    try:
        async with asyncio.timeout(seconds):
            output, errors = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    assert process.returncode is not None
    return Finished(process.returncode, output.decode(), errors.decode())
