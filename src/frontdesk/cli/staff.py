"""`frontdesk staff`: who may sign in to the console of a practice. A sign-in link is printed once and works once."""

import argparse
from typing import TYPE_CHECKING, Any

from frontdesk.cli.commands import add_command, add_group
from frontdesk.cli.connection import Session, with_database
from frontdesk.cli.output import answer, details, instant, table

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from frontdesk.access.staff.members import StaffRecord
    from frontdesk.cli.commands import Commands


def add_staff_commands(commands: "Commands") -> None:
    group = add_group(
        commands, "staff", "Staff who sign in to the console: add, link, list, show, disable, enable, set-role, remove."
    )

    command = add_command(group, "add", _add, "Add a person, and print a link that signs them in once.")
    command.add_argument("--practice", metavar="SLUG", required=True)
    command.add_argument("--name", metavar="NAME", required=True)
    _add_role(command)
    command.add_argument(
        "--email", metavar="ADDRESS", help="lets the person sign in through the identity provider, where one is set"
    )

    command = add_command(group, "link", _link, "Print a new sign-in link; an unused one before it stops working.")
    command.add_argument("id", metavar="ID")

    command = add_command(group, "list", _list, "Show every person.")
    command.add_argument("--practice", metavar="SLUG", help="only this practice's")

    add_command(group, "show", _show, "Show one person.").add_argument("id", metavar="ID")
    command = add_command(group, "disable", _disable, "Sign a person out everywhere, and let them in no more.")
    command.add_argument("id", metavar="ID")
    add_command(group, "enable", _enable, "Let a person in again.").add_argument("id", metavar="ID")
    command = add_command(group, "set-role", _set_role, "Change what a person may do, from their next click on.")
    command.add_argument("id", metavar="ID")
    _add_role(command)
    command = add_command(group, "remove", _remove, "Forget a person; what they did stays under their id.")
    command.add_argument("id", metavar="ID")


def _add_role(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--role",
        metavar="ROLE",
        required=True,
        help="staff: the calendar, patients and confirmations; admin: also clients, usage, audit and the practice",
    )


def _add(args: argparse.Namespace) -> None:
    async def work(session: Session) -> "tuple[StaffRecord, str]":
        from frontdesk.access.staff.members import add_staff

        added = await add_staff(
            session.database, practice=args.practice, name=args.name, role=args.role, email=args.email
        )
        return added, await sign_in_link(session, added.staff_id)

    _answer_link(args, *with_database(work))


def _link(args: argparse.Namespace) -> None:
    async def work(session: Session) -> "tuple[StaffRecord, str]":
        from frontdesk.access.staff.members import show_staff

        return await show_staff(session.database, args.id), await sign_in_link(session, args.id)

    _answer_link(args, *with_database(work))


async def sign_in_link(session: Session, staff_id: str) -> str:
    from frontdesk.access.staff.links import link_address, new_link
    from frontdesk.access.staff.members import COMMAND_LINE, utc_now
    from frontdesk.audit.trail import seal

    member, token = await new_link(session.database, staff_id, actor=COMMAND_LINE, clock=utc_now)
    await seal(session.database, member.practice_id)
    return link_address(session.settings.public_url, token)


def _list(args: argparse.Namespace) -> None:
    async def work(session: Session) -> "list[StaffRecord]":
        from frontdesk.access.staff.members import list_staff
        from frontdesk.cli.practices import known_slug

        practice = None if args.practice is None else await known_slug(session, args.practice)
        return await list_staff(session.database, practice=practice)

    people = with_database(work)
    rows = [(p.staff_id, p.practice_slug, p.name, p.role, _state(p), instant(p.signed_in_at)) for p in people]
    headings = ("OPERATOR", "PRACTICE", "NAME", "ROLE", "STATE", "LAST SIGN-IN")
    answer(args, [_document(person) for person in people], table(headings, rows, "There is nobody yet."))


def _show(args: argparse.Namespace) -> None:
    async def work(session: Session) -> "StaffRecord":
        from frontdesk.access.staff.members import show_staff

        return await show_staff(session.database, args.id)

    _answer_one(args, with_database(work))


def _disable(args: argparse.Namespace) -> None:
    from frontdesk.access.staff.members import disable_staff

    _changed(args, lambda session: disable_staff(session.database, args.id))


def _enable(args: argparse.Namespace) -> None:
    from frontdesk.access.staff.members import enable_staff

    _changed(args, lambda session: enable_staff(session.database, args.id))


def _set_role(args: argparse.Namespace) -> None:
    from frontdesk.access.staff.members import set_role

    _changed(args, lambda session: set_role(session.database, args.id, args.role))


def _remove(args: argparse.Namespace) -> None:
    from frontdesk.access.staff.members import remove_staff

    _changed(args, lambda session: remove_staff(session.database, args.id), note="Removed.")


def _changed(
    args: argparse.Namespace, change: "Callable[[Session], Awaitable[StaffRecord]]", note: str | None = None
) -> None:
    async def work(session: Session) -> "StaffRecord":
        from frontdesk.audit.trail import seal

        changed = await change(session)
        await seal(session.database, changed.practice_id)
        return changed

    person = with_database(work)
    if note is None:
        _answer_one(args, person)
    else:
        answer(args, {"staffId": person.staff_id, "removed": True}, note)


def _answer_link(args: argparse.Namespace, person: "StaffRecord", link: str) -> None:
    from frontdesk.access.staff.links import LINK_LIFETIME

    minutes = int(LINK_LIFETIME.total_seconds() // 60)
    text = details([("Operator", person.staff_id), ("Name", person.name), ("Sign-in link", link)])
    note = f"The link works once, within {minutes} minutes. Whoever has it is {person.name}: hand it over safely."
    document = {"staffId": person.staff_id, "link": link, "expiresInSeconds": minutes * 60}
    answer(args, document, f"{text}\n\n{note}")


def _answer_one(args: argparse.Namespace, person: "StaffRecord") -> None:
    facts: list[tuple[str, Any]] = [
        ("Operator", person.staff_id),
        ("Practice", person.practice_slug),
        ("Name", person.name),
        ("Role", person.role),
        ("E-mail", person.email),
        ("Identity linked", person.linked),
        ("State", _state(person)),
        ("Created", instant(person.created_at)),
        ("Last sign-in", instant(person.signed_in_at)),
    ]
    answer(args, _document(person), details(facts))


def _state(person: "StaffRecord") -> str:
    return "disabled" if person.disabled else "active"


def _document(person: "StaffRecord") -> dict[str, Any]:
    return {
        "staffId": person.staff_id,
        "practice": person.practice_slug,
        "name": person.name,
        "role": person.role,
        "email": person.email,
        "identityLinked": person.linked,
        "disabled": person.disabled,
        "createdAt": instant(person.created_at),
        "lastSignInAt": instant(person.signed_in_at),
    }
