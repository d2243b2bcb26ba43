"""A command that gets SIGTERM: it is cancelled where it waits, and ends also where it is blocked."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.cli.command_line import COMMAND, CommandLine

ENDED = 128 + signal.SIGTERM


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that a failing test leaves behind is killed."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_signal_to_stop_interrupts_work_only_where_it_waits() -> None:
    """Anywhere else the event loop could lose a callback, and the process would never end."""
    program = """
import asyncio, signal, sys
from frontdesk.cli.connection import wait_for

async def work():
    try:
        signal.raise_signal(signal.SIGTERM)
        print("goes on")
        await asyncio.sleep(60)
    finally:
        print("cleans up")

signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
wait_for(work())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (128 + signal.SIGTERM, "goes on\ncleans up\n")


def test_a_signal_to_stop_ends_a_command_at_its_prompt(line: CommandLine, harbor: str) -> None:
    added = line.json(
        "client", "add", "--practice", harbor, "--name", "Phone", "--grant", "agent", "--scope", "slots:read"
    )
    ours, terminal = pty.openpty()
    command = [COMMAND, "client", "remove", added["clientId"]]
    with started(command, stdin=terminal, stderr=subprocess.PIPE, env=line.environment()) as process:
        assert process.stderr is not None
        shown = b""
        while not shown.endswith(b"to confirm: "):
            part = os.read(process.stderr.fileno(), 1000)
            assert part, shown
            shown += part
        process.terminate()
        assert process.wait(20) == ENDED
        assert process.stderr.read() == b""
    os.close(ours)
    os.close(terminal)
    assert line.json("client", "show", added["clientId"])["clientId"] == added["clientId"]


def test_a_signal_to_stop_ends_a_command_whose_output_nobody_reads() -> None:
    program = """
import os, signal, sys
from frontdesk.cli.connection import wait_for

async def work():
    os.write(2, b"begins")
    while True:
        os.write(1, b"x" * 1000)

signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
wait_for(work())
"""
    command = [sys.executable, "-c", program]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.read(6) == b"begins"
        process.terminate()
        assert process.wait(20) == ENDED


def test_a_second_signal_to_stop_ends_what_goes_on() -> None:
    program = """
import asyncio, signal, sys
from frontdesk.cli.connection import wait_for

async def work():
    while True:
        try:
            print("waits", flush=True)
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
wait_for(work())
"""
    with started([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(2):
            assert process.stdout.readline() == b"waits\n"
            process.terminate()
        assert process.wait(20) == ENDED
