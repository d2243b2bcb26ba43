"""Declares commands; every command takes --json."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[Any]

Run = Callable[[argparse.Namespace], int | None]


def add_group(commands: "Commands", name: str, summary: str) -> "Commands":
    group: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    return group.add_subparsers(title="commands", metavar="COMMAND", required=True)


def add_command(commands: "Commands", name: str, run: Run, summary: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    command.add_argument("--json", action="store_true", help="print one JSON document instead of text")
    command.set_defaults(run=run)
    return command
