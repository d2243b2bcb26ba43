"""Confirmation of commands that cannot be undone: typed in a terminal, or given as --yes."""

import argparse
import sys

from frontdesk.cli.output import BadInput, CommandError


def add_yes(command: argparse.ArgumentParser) -> None:
    command.add_argument("--yes", action="store_true", help="do not ask")


def confirm(args: argparse.Namespace, consequence: str, word: str) -> None:
    """Raises unless the person types the word. Without a terminal nobody can be asked."""
    if args.yes:
        return
    if args.json or not sys.stdin.isatty():
        raise BadInput(f"{consequence} Give --yes to confirm.")
    print(f"{consequence}\nType {word} to confirm: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != word:
        raise CommandError("Nothing was removed.")
