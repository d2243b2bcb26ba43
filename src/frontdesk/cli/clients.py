"""`frontdesk client`: manages API clients. A secret is printed only once."""

import argparse
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from frontdesk.cli.commands import Commands, add_command, add_group
from frontdesk.cli.confirming import add_yes, confirm
from frontdesk.cli.connection import CommandContext, with_database
from frontdesk.cli.output import BadInput, answer, details, instant, table, to_document

if TYPE_CHECKING:
    from frontdesk.access.clients.records import AccessLimits, ClientKeys, ClientRecord
    from frontdesk.audit.trail import AuditRecorder
    from frontdesk.store.database import Database

_NO_CLIENT = (
    "There is no client yet. Add one: frontdesk client add --practice SLUG --name NAME --grant agent --scope all"
)
_PRACTICE = "practice"  # follow the practice's setting
_SCOPE_HELP = "all: every scope except those of extensions"
_ENDED = "Ends access tokens issued before; refresh tokens of assistants stay, and give only what the client holds."
_AS_PRACTICE = f"{_PRACTICE}: use the practice's setting"
_JWKS_HELP = "JSON Web Key Set with the public keys of a client that signs its token requests (private_key_jwt)"
_TRUSTED_HELP = "what its host reports of people (elicitation, card) counts as their consent"
_ACCESS_LIMITS = {  # but for known patients: what they are called, and what they mean
    "patients_per_hour": ("Patients an hour", "distinct patients that it may read in an hour"),
    "patients_per_day": ("Patients a day", "distinct patients that it may read in a day"),
    "match_misses": ("Match misses", "failed matches of a person until matching this person is locked"),
    "writes_per_hour": ("Writes an hour", "writes of each kind that it may make in an hour"),
    "upcoming_per_patient": ("Upcoming per patient", "upcoming appointments that it may have booked for one patient"),
}
_KNOWN_ONLY = {"yes": True, "no": False, _PRACTICE: None}


def add_commands(commands: Commands) -> None:
    group = add_group(
        commands, "client", "Clients: add, list, show, disable, enable, remove, secrets, tokens, scopes, limits."
    )

    command = add_command(group, "add", _add, "Add a client; its secret is shown only once.")
    command.add_argument("--practice", metavar="SLUG", required=True)
    command.add_argument("--name", metavar="NAME", required=True)
    command.add_argument(
        "--grant",
        metavar="GRANT",
        required=True,
        help="agent: every write needs a confirmation; integration: writes are executed immediately",
    )
    command.add_argument("--scope", metavar="SCOPE", action="append", help=f"repeatable; {_SCOPE_HELP}")
    command.add_argument("--jwks", metavar="FILE|URL", help=_JWKS_HELP)
    command.add_argument("--trusted-to-ask", action="store_true", help=_TRUSTED_HELP)
    _add_limits(command)

    command = add_command(group, "list", _list, "Show every client.")
    command.add_argument("--practice", metavar="SLUG", help="only this practice")

    add_command(group, "show", _show, "Show one client.", "id")
    add_command(group, "disable", _disable, "Disable a client.", "id")
    add_command(group, "enable", _enable, "Enable a client.", "id")

    add_command(group, "trust", _trust, f"Trust a client to ask people: {_TRUSTED_HELP}.", "id")
    add_command(group, "distrust", _distrust, "No longer trust a client to ask people.", "id")

    command = add_command(group, "remove", _remove, "Delete a client; audit records keep its id.", "id")
    add_yes(command)

    command = add_command(group, "rotate-secret", _rotate_secret, "Give a client a new secret, shown only once.", "id")
    command.add_argument("--at-once", action="store_true", help="revoke the old secret and every token immediately")

    command = add_command(group, "set-keys", _set_keys, "Set the public keys of a client, or remove them.", "id")
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument("--jwks", metavar="FILE|URL", help=_JWKS_HELP)
    source.add_argument("--remove", action="store_true", help="the client then authenticates with its secret only")

    add_command(group, "revoke-tokens", _revoke_tokens, "End every token issued so far; secrets keep working.", "id")

    command = add_command(group, "set-scopes", _set_scopes, f"Replace a client's scopes. {_ENDED}", "id")
    command.add_argument("scope", metavar="SCOPE", nargs="+", help=_SCOPE_HELP)

    command = add_command(group, "set-access", _set_access, f"Change a client's scopes or grant. {_ENDED}", "id")
    command.add_argument(
        "--scope",
        metavar="SCOPE",
        action="append",
        help=f"repeatable; {_SCOPE_HELP}; replaces the present ones",
    )
    command.add_argument("--grant", metavar="GRANT", help="agent or integration")

    command = add_command(group, "set-limits", _set_limits, "Change a client's limits.", "id")
    _add_limits(command)

    add_command(group, "forget-misses", _forget_misses, "Forget a client's failed matches, which ends its locks.", "id")


def _add_limits(command: argparse.ArgumentParser) -> None:
    command.add_argument("--per-minute", metavar="N", type=int, help="calls per minute")
    command.add_argument("--quota", metavar="N", type=int, help="calls in 30 days")
    for name, (_, meaning) in _ACCESS_LIMITS.items():
        option = "--" + name.replace("_", "-")
        command.add_argument(option, metavar="N", type=_limit, help=f"{meaning}; 0: unlimited; {_AS_PRACTICE}")
    command.add_argument(
        "--known-patients-only",
        choices=_KNOWN_ONLY,
        help=f"whether it sees only patients that it matched, created or booked; {_AS_PRACTICE}",
    )


def _limit(text: str) -> "int | str":
    return text if text == _PRACTICE else int(text)


def _access_limits(args: argparse.Namespace, before: "AccessLimits") -> "AccessLimits":
    """The limits that were given, in place of those before."""
    from dataclasses import replace

    given = {name: getattr(args, name) for name in _ACCESS_LIMITS}
    limits = {name: None if value == _PRACTICE else value for name, value in given.items() if value is not None}
    if args.known_patients_only is not None:
        limits["known_patients_only"] = _KNOWN_ONLY[args.known_patients_only]
    return replace(before, **limits)


def _add(args: argparse.Namespace) -> None:
    scopes = _scopes(args.scope or ())

    async def work(context: CommandContext) -> "tuple[ClientRecord, str]":
        from frontdesk.access.clients.records import (
            AS_THE_PRACTICE,
            DEFAULT_PER_MINUTE,
            DEFAULT_QUOTA,
            add_client,
            trust_client,
        )

        client, secret = await add_client(
            context.database,
            await context.ring(),
            practice=args.practice,
            name=args.name,
            grant=args.grant,
            scopes=scopes,
            per_minute=DEFAULT_PER_MINUTE if args.per_minute is None else args.per_minute,
            quota=DEFAULT_QUOTA if args.quota is None else args.quota,
            access_limits=_access_limits(args, AS_THE_PRACTICE),
            keys=await _keys(context, args.jwks),
            recorder=context.audit.recorder("console.add_client"),
        )
        if args.trusted_to_ask:
            recorder = context.audit.recorder("console.trust_client")
            client = await trust_client(context.database, client.client_id, recorder=recorder)
        return client, secret

    _answer_secret(args, *with_database(work))


def _scopes(given: Sequence[str]) -> list[str]:
    """The scopes that were given; `all` stands for every scope of the contract."""
    from frontdesk.access.clients.scopes import SCOPES, every_scope, extension_scopes

    if not given:
        raise BadInput(
            f"frontdesk client add: give --scope for each scope that the client needs ({', '.join(every_scope())}), "
            f"or --scope all for all but {', '.join(extension_scopes())}."
        )
    named = [scope for scope in given if scope != "all"]
    return [*named, *SCOPES] if len(named) < len(given) else named


def _list(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> "list[ClientRecord]":
        from frontdesk.access.clients.records import list_clients

        if args.practice is not None:
            await context.practice_id(args.practice)
        return await list_clients(context.database, practice=args.practice)

    clients = with_database(work)
    rows = [(c.client_id, c.practice_slug, c.name, c.grant, c.per_minute, c.quota, _state(c)) for c in clients]
    headings = ("CLIENT", "PRACTICE", "NAME", "GRANT", "PER MINUTE", "QUOTA", "STATE")
    answer(args, [to_document(client) for client in clients], table(headings, rows, _NO_CLIENT))


def _show(args: argparse.Namespace) -> None:
    from frontdesk.access.clients.records import show_client

    _answer_one(args, with_database(lambda context: show_client(context.database, args.id)))


def _disable(args: argparse.Namespace) -> None:
    from frontdesk.access.clients.records import disable_client

    _change(args, "console.disable_client", disable_client)


def _enable(args: argparse.Namespace) -> None:
    from frontdesk.access.clients.records import enable_client

    _change(args, "console.enable_client", enable_client)


def _trust(args: argparse.Namespace) -> None:
    from frontdesk.access.clients.records import trust_client

    _change(args, "console.trust_client", trust_client)


def _distrust(args: argparse.Namespace) -> None:
    from frontdesk.access.clients.records import distrust_client

    _change(args, "console.distrust_client", distrust_client)


def _rotate_secret(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> "tuple[ClientRecord, str]":
        from frontdesk.access.clients.records import DEFAULT_RETIREMENT, rotate_secret

        return await rotate_secret(
            context.database,
            await context.ring(),
            args.id,
            retire_old_after=timedelta(0) if args.at_once else DEFAULT_RETIREMENT,
            recorder=context.audit.recorder("console.rotate_client_secret"),
        )

    _answer_secret(args, *with_database(work))


def _set_keys(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> "ClientRecord":
        from frontdesk.access.clients.records import set_keys

        keys = await _keys(context, args.jwks)
        return await set_keys(context.database, args.id, keys, recorder=context.audit.recorder("console.change_client"))

    _answer_one(args, with_database(work))


async def _keys(context: CommandContext, source: str | None) -> "ClientKeys":
    """The key set of a file, or the URL of one that was fetched to check it."""
    from frontdesk.access.clients.public_keys import read_jwks
    from frontdesk.access.clients.records import NO_KEYS, ClientKeys
    from frontdesk.outbound.checked_http import CheckedHttp
    from frontdesk.outbound.key_sets import read_key_set

    if source is None:
        return NO_KEYS
    if "://" not in source:
        return ClientKeys(jwks=read_jwks(_content(source)))
    http = CheckedHttp(allow_private=context.settings.webhook_allow_private)
    try:
        await read_key_set(http, source)
    finally:
        await http.close()
    return ClientKeys(url=source)


def _content(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise BadInput(f"The key set {file} cannot be read: {error.strerror}.") from None


def _revoke_tokens(args: argparse.Namespace) -> None:
    from frontdesk.access.clients.records import revoke_tokens

    _change(args, "console.revoke_client_tokens", revoke_tokens)


def _set_scopes(args: argparse.Namespace) -> None:
    from frontdesk.access.clients.records import change_client

    _change(args, "console.change_client", change_client, scopes=_scopes(args.scope))


def _remove(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> None:
        from frontdesk.access.clients.records import remove_client, show_client

        client = await show_client(context.database, args.id)
        confirm(
            args,
            f"Client {client.client_id} ({client.name}) of {client.practice_slug}: its secrets and tokens end at once, "
            "and it cannot be brought back.",
            "yes",
        )
        await remove_client(context.database, args.id, recorder=context.audit.recorder("command.remove_client"))

    with_database(work)
    answer(args, {"clientId": args.id, "removed": True}, "Removed.")


def _set_access(args: argparse.Namespace) -> None:
    if args.scope is None and args.grant is None:
        raise BadInput("frontdesk client set-access: give --scope, --grant or both.")
    from frontdesk.access.clients.records import change_client

    scopes = None if args.scope is None else _scopes(args.scope)
    _change(args, "console.change_client", change_client, scopes=scopes, grant=args.grant)


def _set_limits(args: argparse.Namespace) -> None:
    from frontdesk.access.clients.records import change_client, show_client

    names = ("per_minute", "quota", "known_patients_only", *_ACCESS_LIMITS)
    if all(getattr(args, name) is None for name in names):
        raise BadInput("frontdesk client set-limits: give at least one limit, such as --per-minute.")

    async def change(database: "Database", client_id: str, *, recorder: "AuditRecorder") -> "ClientRecord":
        access = _access_limits(args, (await show_client(database, client_id)).access_limits)
        limits = {"per_minute": args.per_minute, "quota": args.quota, "access_limits": access}
        return await change_client(database, client_id, **limits, recorder=recorder)

    _change(args, "console.change_client", change)


def _forget_misses(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> "ClientRecord":
        from frontdesk.access.clients.records import show_client
        from frontdesk.access.limits.match_attempts import forget_misses

        client = await show_client(context.database, args.id)
        practice_id = await context.practice_id(client.practice_slug)
        async with context.database.transaction(practice_id) as connection:
            await forget_misses(connection, practice_id, client.client_id)
            await context.audit.recorder("console.forget_client_misses")(connection, practice_id, client.client_id)
        return client

    _answer_one(args, with_database(work))


def _change(
    args: argparse.Namespace, operation: str, change: "Callable[..., Awaitable[ClientRecord]]", **values: object
) -> None:
    def work(context: CommandContext) -> "Awaitable[ClientRecord]":
        return change(context.database, args.id, **values, recorder=context.audit.recorder(operation))

    _answer_one(args, with_database(work))


def _answer_secret(args: argparse.Namespace, client: "ClientRecord", secret: str) -> None:
    text = details([("Client id", client.client_id), ("Client secret", secret)])
    note = "Keep the secret now: it is not stored and cannot be shown again."
    retiring = [record.retires_at for record in client.secrets if record.retires_at is not None]
    if retiring:
        note += f"\nThe previous secret works until {instant(retiring[0])}."
    answer(args, {"clientId": client.client_id, "clientSecret": secret}, f"{text}\n\n{note}")


def _answer_one(args: argparse.Namespace, client: "ClientRecord") -> None:
    access = client.access_limits
    facts: list[tuple[str, object]] = [
        ("Client", client.client_id),
        ("Practice", client.practice_slug),
        ("Name", client.name),
        ("Grant", client.grant),
        ("Scopes", " ".join(client.scopes)),
        ("Per minute", client.per_minute),
        ("Quota", client.quota),
        *(
            (label, {None: "as the practice", 0: "unlimited"}.get(value := getattr(access, name), value))
            for name, (label, _) in _ACCESS_LIMITS.items()
        ),
        (
            "Known patients only",
            "as the practice" if access.known_patients_only is None else access.known_patients_only,
        ),
        ("Trusted to ask people", "yes" if client.trusted_to_ask else "no"),
        ("State", _state(client)),
        ("Created", instant(client.created_at)),
        ("Tokens not before", instant(client.tokens_not_before)),
    ]
    if client.key_ids or client.jwks_url:
        facts.append(("Keys", client.jwks_url or ", ".join(client.key_ids)))
    for secret in client.secrets:
        until = "" if secret.retires_at is None else f", works until {instant(secret.retires_at)}"
        facts.append(("Secret", f"made {instant(secret.created_at)}{until}"))
    answer(args, to_document(client), details(facts))


def _state(client: "ClientRecord") -> str:
    return "disabled" if client.disabled else "active"
