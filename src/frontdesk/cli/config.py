"""`frontdesk config`: shows the settings and where each comes from."""

import argparse
from pathlib import Path

from frontdesk.cli.commands import Commands, add_command, add_group
from frontdesk.cli.output import answer, table


def add_commands(commands: Commands) -> None:
    group = add_group(commands, "config", "The settings: show.")
    add_command(group, "show", _show, "Show every setting, its value and where it comes from; secrets are not shown.")


def _show(args: argparse.Namespace) -> None:
    from frontdesk.settings import Settings, load_with_sources

    settings, file, sources = load_with_sources(data_dir=args.data_dir)
    texts = settings.as_environment()
    shown, rows = [], []
    for name, field in Settings.model_fields.items():
        value, text = getattr(settings, name), texts[str(field.alias)]
        if text and not field.repr:
            value = text = "(set)"
        value = str(value) if isinstance(value, Path) else value
        shown.append({"setting": name, "variable": field.alias, "value": value, "source": sources[name]})
        rows.append((name, text or "-", sources[name]))
    document = {"file": None if file is None else str(file), "settings": shown}
    answer(args, document, f"File: {file or 'none'}\n\n" + table(("SETTING", "VALUE", "SOURCE"), rows, ""))
