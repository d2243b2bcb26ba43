"""Runs the command in forks of a process that has imported it: starting Python anew takes most of a command's time.

python -m tests.cli.preloaded SOCKET
"""

import atexit
import contextlib
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

_MAX_MESSAGE_BYTES = 1 << 20


class Preloaded:
    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen([sys.executable, "-m", __name__, str(number)], pass_fds=[number])
        self._one_at_a_time = threading.Lock()
        atexit.register(self.close)

    def run(
        self, words: Sequence[str], stdin: str, environment: Mapping[str, str], timeout: float
    ) -> tuple[int, str, str]:
        """The exit status, standard output and standard error of a command."""
        with self._one_at_a_time, contextlib.ExitStack() as stack:
            files: list[IO[bytes]] = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
            files[0].write(stdin.encode())
            files[0].seek(0)
            asked = json.dumps([list(words), dict(environment), str(Path.cwd())]).encode()
            assert len(asked) < _MAX_MESSAGE_BYTES
            socket.send_fds(self._socket, [asked], [file.fileno() for file in files])
            process = int(self._socket.recv(64))
            self._socket.settimeout(timeout)
            try:
                status = int(self._socket.recv(64))
            except TimeoutError:
                os.kill(process, signal.SIGKILL)
                status = int(self._socket.recv(64))
            for file in files[1:]:
                file.seek(0)
            return status, files[1].read().decode(), files[2].read().decode()

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


# Their libraries read the environment when they are imported, or are slow to import and seldom used.
_LEFT_OUT = (
    "frontdesk.doors.metrics",
    "frontdesk.measurements",
    "frontdesk.serving.otlp",
)


@cache
def preloaded() -> Preloaded:
    """One for each test process."""
    return Preloaded()


def _serve(asked: socket.socket) -> None:
    import frontdesk.cli

    for module in pkgutil.walk_packages(frontdesk.__path__, "frontdesk."):
        if not module.name.startswith(_LEFT_OUT) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    while True:
        message, files, _, _ = socket.recv_fds(asked, _MAX_MESSAGE_BYTES, 3)
        if not message:
            return
        words, environment, folder = json.loads(message)
        process = os.fork()
        if process == 0:
            asked.close()
            _run(words, environment, folder, files)
        for file in files:
            os.close(file)
        asked.send(str(process).encode())
        asked.send(str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])).encode())


def _run(words: list[str], environment: dict[str, str], folder: str, files: list[int]) -> None:
    """What the script of the package does, in a fork."""
    status: int | str | None = 1
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        os.chdir(folder)
        sys.argv = ["frontdesk", *words]
        from frontdesk.cli import main

        try:
            status = main()
        except SystemExit as ended:  # --help and --version
            status = ended.code
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status if isinstance(status, int) else 0)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
