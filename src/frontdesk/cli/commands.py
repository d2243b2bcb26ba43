"""Declares commands; every command takes --json, --config and --data-dir."""

import argparse
from collections.abc import Callable
from typing import TypeAlias
from weakref import WeakKeyDictionary

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Run = Callable[[argparse.Namespace], int | None]
_MAX_ROWS = 1_000_000
_groups: WeakKeyDictionary[argparse.ArgumentParser, Commands] = WeakKeyDictionary()


def add_group(commands: Commands, name: str, summary: str) -> Commands:
    group = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    _groups[group] = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    return _groups[group]


def group_named(commands: Commands, name: str) -> Commands:
    """The group of another module, to which a feature adds a command."""
    return _groups[commands.choices[name]]


def add_command(commands: Commands, name: str, run: Run, summary: str, *positional: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    command.add_argument("--json", action="store_true", help="print one JSON document instead of text")
    command.add_argument("--config", metavar="FILE", help="settings in TOML (default: the file of FRONTDESK_CONFIG)")
    command.add_argument("--data-dir", metavar="FOLDER", help="data directory (default .frontdesk)")
    for argument in positional:
        command.add_argument(argument, metavar=argument.upper())
    command.set_defaults(run=run, parser=command)
    return command


def add_limit(command: argparse.ArgumentParser, noun: str) -> None:
    command.add_argument("--limit", metavar="N", type=_limit, default=50, help=f"maximum number of {noun} (default 50)")


def _limit(text: str) -> int:
    says = f"must be a whole number from 1 to {_MAX_ROWS}"
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(says) from None
    if not 1 <= number <= _MAX_ROWS:
        raise argparse.ArgumentTypeError(says)
    return number
