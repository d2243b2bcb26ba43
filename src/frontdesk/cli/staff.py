"""`frontdesk staff`: manages the staff who may sign in to the console."""

import argparse
from typing import TYPE_CHECKING

from frontdesk.cli.commands import Commands, add_command, add_group
from frontdesk.cli.connection import CommandContext, with_database
from frontdesk.cli.output import answer, details, instant, table, to_document

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from frontdesk.access.staff.members import StaffRecord

_NO_STAFF = "There is no staff yet. Add somebody: frontdesk staff add --practice SLUG --name NAME --role admin"


def add_commands(commands: Commands) -> None:
    group = add_group(
        commands, "staff", "Staff who sign in to the console: add, link, list, show, disable, enable, set-role, remove."
    )

    command = add_command(group, "add", _add, "Add a staff member and print a one-time sign-in link.")
    command.add_argument("--practice", metavar="SLUG", required=True)
    command.add_argument("--name", metavar="NAME", required=True)
    _add_role(command)
    command.add_argument(
        "--email", metavar="ADDRESS", help="lets the staff member sign in through the identity provider, if one is set"
    )

    add_command(group, "link", _link, "Print a new sign-in link; it replaces an unused one.", "id")

    command = add_command(group, "list", _list, "List staff members.")
    command.add_argument("--practice", metavar="SLUG", help="only this practice")

    add_command(group, "show", _show, "Show one staff member.", "id")
    add_command(group, "disable", _disable, "Disable a staff member and end all their sessions.", "id")
    add_command(group, "enable", _enable, "Enable a staff member.", "id")
    command = add_command(group, "set-role", _set_role, "Change a staff member's role.", "id")
    _add_role(command)
    add_command(group, "remove", _remove, "Delete a staff member; audit records keep the id.", "id")


def _add_role(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--role",
        metavar="ROLE",
        required=True,
        help="staff: calendar, patients and confirmations; admin: also clients, usage, audit and the practice",
    )


def _add(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> "tuple[StaffRecord, str]":
        from frontdesk.access.staff.members import add_staff

        added = await add_staff(
            context.database,
            practice=args.practice,
            name=args.name,
            role=args.role,
            email=args.email,
            audit=context.audit,
        )
        return added, await sign_in_link(context, added.staff_id)

    _answer_link(args, *with_database(work))


def _link(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> "tuple[StaffRecord, str]":
        from frontdesk.access.staff.members import show_staff

        return await show_staff(context.database, args.id), await sign_in_link(context, args.id)

    _answer_link(args, *with_database(work))


async def sign_in_link(context: CommandContext, staff_id: str) -> str:
    from frontdesk.access.staff.links import link_address, new_link
    from frontdesk.audit.trail import seal

    member, token = await new_link(context.database, staff_id, audit=context.audit)
    await seal(context.database, member.practice_id)
    return link_address(context.settings.public_url, token)


def _list(args: argparse.Namespace) -> None:
    async def work(context: CommandContext) -> "list[StaffRecord]":
        from frontdesk.access.staff.members import list_staff

        if args.practice is not None:
            await context.practice_id(args.practice)
        return await list_staff(context.database, practice=args.practice)

    members = with_database(work)
    rows = [(p.staff_id, p.practice_slug, p.name, p.role, _state(p), instant(p.signed_in_at)) for p in members]
    headings = ("STAFF ID", "PRACTICE", "NAME", "ROLE", "STATE", "LAST SIGN-IN")
    answer(args, [_document(member) for member in members], table(headings, rows, _NO_STAFF))


def _show(args: argparse.Namespace) -> None:
    from frontdesk.access.staff.members import show_staff

    _answer_one(args, with_database(lambda context: show_staff(context.database, args.id)))


def _disable(args: argparse.Namespace) -> None:
    from frontdesk.access.staff.members import disable_staff

    _answer_one(args, _change_and_seal(args, disable_staff))


def _enable(args: argparse.Namespace) -> None:
    from frontdesk.access.staff.members import enable_staff

    _answer_one(args, _change_and_seal(args, enable_staff))


def _set_role(args: argparse.Namespace) -> None:
    from frontdesk.access.staff.members import set_role

    _answer_one(args, _change_and_seal(args, set_role, args.role))


def _remove(args: argparse.Namespace) -> None:
    from frontdesk.access.staff.members import remove_staff

    member = _change_and_seal(args, remove_staff)
    answer(args, {"staffId": member.staff_id, "removed": True}, "Removed.")


def _change_and_seal(
    args: argparse.Namespace, change: "Callable[..., Awaitable[StaffRecord]]", *values: object
) -> "StaffRecord":
    """Carry out a change and seal its audit record."""

    async def work(context: CommandContext) -> "StaffRecord":
        from frontdesk.audit.trail import seal

        changed = await change(context.database, args.id, *values, audit=context.audit)
        await seal(context.database, changed.practice_id)
        return changed

    return with_database(work)


def _answer_link(args: argparse.Namespace, member: "StaffRecord", link: str) -> None:
    from frontdesk.access.staff.links import LINK_LIFETIME

    minutes = int(LINK_LIFETIME.total_seconds() // 60)
    text = details([("Staff id", member.staff_id), ("Name", member.name), ("Sign-in link", link)])
    note = f"The link works once, within {minutes} minutes. Anyone who has it can sign in as {member.name}."
    document = {"staffId": member.staff_id, "link": link, "expiresInSeconds": minutes * 60}
    answer(args, document, f"{text}\n\n{note}")


def _answer_one(args: argparse.Namespace, member: "StaffRecord") -> None:
    facts: list[tuple[str, object]] = [
        ("Staff id", member.staff_id),
        ("Practice", member.practice_slug),
        ("Name", member.name),
        ("Role", member.role),
        ("E-mail", member.email),
        ("Identity linked", member.linked),
        ("State", _state(member)),
        ("Created", instant(member.created_at)),
        ("Last sign-in", instant(member.signed_in_at)),
    ]
    answer(args, _document(member), details(facts))


def _state(member: "StaffRecord") -> str:
    return "disabled" if member.disabled else "active"


def _document(member: "StaffRecord") -> dict[str, object]:
    return to_document(member, linked="identityLinked", signed_in_at="lastSignInAt")
