"""`frontdesk config`: shows the settings and where each comes from."""

import argparse
from typing import Any

from frontdesk.cli.commands import Commands, add_command, add_group
from frontdesk.cli.output import answer, table


def add_commands(commands: Commands) -> None:
    group = add_group(commands, "config", "The settings: show.")
    add_command(group, "show", _show, "Show every setting, its value and where it comes from; secrets are not shown.")


def _show(args: argparse.Namespace) -> None:
    from frontdesk.settings import Settings, load_with_sources

    settings, file, sources = load_with_sources(data_dir=args.data_dir)
    shown: list[dict[str, Any]] = []
    for name, field in Settings.model_fields.items():
        value, secret = getattr(settings, name), not field.repr
        if value is not None and (secret or not isinstance(value, bool | int | tuple)):
            value = "(set)" if secret else str(value)
        shown.append({"setting": name, "variable": field.alias, "value": value, "source": sources[name]})
    rows = [(each["setting"], _cell(each["value"]), each["source"]) for each in shown]
    document = {"file": None if file is None else str(file), "settings": shown}
    answer(args, document, f"File: {file or 'none'}\n\n" + table(("SETTING", "VALUE", "SOURCE"), rows, ""))


def _cell(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "-"
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
