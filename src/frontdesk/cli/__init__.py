"""The command line. Commands import heavy modules lazily, so that `--help` is fast."""

import argparse
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from frontdesk import __version__
from frontdesk.cli import (
    audit,
    backup,
    clients,
    completion,
    config,
    db,
    doctor,
    events,
    keys,
    patients,
    practices,
    restore,
    serve,
    staff,
    support_bundle,
    webhooks,
)
from frontdesk.cli.commands import Commands
from frontdesk.cli.output import BAD_INPUT, BadInput, discard, flush, report
from frontdesk.feature import features
from frontdesk.privileges import leave_closed_home


class Parser(argparse.ArgumentParser):
    """Raises BadInput with one line instead of printing usage."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{self.prog}: {message}. See {self.prog} --help.")


def main(arguments: Sequence[str] | None = None) -> int:
    if arguments is None:  # by default the first process of a container would ignore the signal
        signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    leave_closed_home()
    given = sys.argv[1:] if arguments is None else arguments
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # names of files may be any bytes
    parser = _parser()
    try:
        args, unknown = parser.parse_known_args(given)
        if unknown:
            args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")  # of the command, whose --help it names
        if args.run is None:
            parser.print_help(sys.stderr)
            return BAD_INPUT
        _use_options(args)
        run: Callable[[argparse.Namespace], int | None] = args.run
        status = run(args) or 0
        flush()
        return status
    except BrokenPipeError:
        discard()  # the reader closed the pipe
        return 0
    except (Exception, KeyboardInterrupt) as error:
        return report(error, as_json="--json" in given)


def _use_options(args: argparse.Namespace) -> None:
    """Everything that reads settings finds these options in the environment, in other processes, too."""
    if args.config is not None:
        os.environ["FRONTDESK_CONFIG"] = args.config
    if args.data_dir is not None:
        os.environ["FRONTDESK_DATA_DIR"] = args.data_dir


def _parser() -> Parser:
    parser = Parser(
        prog="frontdesk",
        description="A scheduling API for medical practices, safe to give to integrations and AI agents.",
        epilog="Settings come from FRONTDESK_* variables and from a TOML file; frontdesk config show lists them.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"frontdesk {__version__}")
    parser.set_defaults(run=None, parser=parser)
    commands: Commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    for module in (
        serve, practices, patients, clients, staff, webhooks, events, audit, keys, config, db, backup, restore,
        doctor, support_bundle, completion,
    ):  # fmt: skip
        module.add_commands(commands)
    for feature in features():
        feature.add_commands(commands)
    return parser
