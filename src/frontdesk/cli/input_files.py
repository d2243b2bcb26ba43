"""Files that a command is given, or its standard input."""

import sys
from pathlib import Path

from frontdesk.cli.output import BadInput


def read_input(name: str, max_bytes: int) -> bytes:
    """The beginning of a file, read with the rights of the caller; `-` is standard input."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(max_bytes)
        with Path(name).open("rb") as file:
            return file.read(max_bytes)
    except OSError as error:
        raise BadInput(f"{name} cannot be read: {error.strerror}.") from None
