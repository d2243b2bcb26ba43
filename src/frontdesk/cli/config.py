"""`frontdesk config`: shows the settings and where each comes from."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frontdesk.cli.commands import Commands, add_command, add_group
from frontdesk.cli.output import answer, table

if TYPE_CHECKING:
    from frontdesk.settings import LoadedSettings


def add_commands(commands: Commands) -> None:
    group = add_group(commands, "config", "The settings: show.")
    add_command(group, "show", _show, "Show every setting, its value and where it comes from; secrets are not shown.")


def _show(args: argparse.Namespace) -> None:
    from frontdesk.settings import load_with_sources

    loaded = load_with_sources(data_dir=args.data_dir or None)
    texts = loaded.settings.as_environment()
    document = settings_document(loaded)
    rows = []
    for shown in document["settings"]:
        text = shown["value"] if isinstance(shown["value"], str) else texts[shown["variable"]]
        rows.append((shown["setting"], text or "-", shown["source"]))
    answer(args, document, f"File: {loaded.file or 'none'}\n\n" + table(("SETTING", "VALUE", "SOURCE"), rows, ""))


def settings_document(loaded: "LoadedSettings") -> dict[str, Any]:
    """Every setting with its source, without secrets."""
    settings, file, sources = loaded
    shown = []
    for name, field in type(settings).model_fields.items():
        value = settings.shown(name)
        value = str(value) if isinstance(value, Path) else value
        shown.append({"setting": name, "variable": field.alias, "value": value, "source": sources[name]})
    return {"file": None if file is None else str(file), "settings": shown}
