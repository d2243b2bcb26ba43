"""`frontdesk completion`: a script with which bash and zsh complete commands, options and their choices."""

import argparse
import sys
from collections.abc import Iterator

from frontdesk.cli.commands import Commands, add_command

_SCRIPT = """\
# Completion of frontdesk for bash and zsh, made by frontdesk completion.
_frontdesk() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD - 1]}}" place="" word words="" i
    for ((i = 1; i < COMP_CWORD; i++)); do
        word="${{COMP_WORDS[i]}}"
        case "$place $word" in
            {known}) place="$place $word" ;;
        esac
    done
    case "$place" in
{words}
    esac
    case "$place $previous" in
{choices}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _frontdesk frontdesk
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def add_commands(commands: Commands) -> None:
    def run(args: argparse.Namespace) -> None:
        sys.stdout.write((_ZSH if args.shell == "zsh" else "") + completion_script(commands))

    command = add_command(
        commands, "completion", run, 'Print a completion script: eval "$(frontdesk completion bash)".'
    )
    command.add_argument("shell", choices=("bash", "zsh"))


def completion_script(commands: Commands) -> str:
    nodes = list(_nodes(commands, ""))
    words = [("", list(commands.choices)), *((place, _words(parser)) for place, parser in nodes)]
    choices = [
        (f"{place} {option}", [str(choice) for choice in action.choices])
        for place, parser in nodes
        for action in parser._actions
        if action.choices
        for option in action.option_strings
    ]
    return _SCRIPT.format(
        known=" | ".join(f'"{place}"' for place, _ in nodes), words=_branches(words), choices=_branches(choices)
    )


def _branches(words: list[tuple[str, list[str]]]) -> str:
    return "\n".join(f'        "{pattern}") words="{" ".join(offered)}" ;;' for pattern, offered in words)


def _nodes(commands: Commands, place: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for name, parser in commands.choices.items():
        here = f"{place} {name}"
        yield here, parser
        for action in _groups(parser):
            yield from _nodes(action, here)


def _groups(parser: argparse.ArgumentParser) -> list[Commands]:
    return [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]


def _words(parser: argparse.ArgumentParser) -> list[str]:
    """What may follow: commands and options, and the choices of an argument."""
    found = []
    for action in parser._actions:
        found += [option for option in action.option_strings if option.startswith("--")]
        if action.choices and not action.option_strings:
            found += [str(choice) for choice in action.choices]
    return found
