"""`frontdesk practice import --dry-run`: what a file would change, and which booked patients it would strand."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frontdesk.cli.connection import CommandContext, has_database, wait_for, with_database
from frontdesk.cli.output import answer, counted, table, to_document

if TYPE_CHECKING:
    from frontdesk.domain.stranded import Stranded
    from frontdesk.practice_file import PracticeFile
    from frontdesk.store.practice_import import Difference
    from frontdesk.systems.stranding import Choice, StrandingReport

_CONSEQUENCES = {
    "keep": "They would stay booked. Give --stranded refuse or --stranded cancel if they must not.",
    "cancel": "They would be cancelled.",
}
_STAY = "They would stay booked at the practice's FHIR server. Give --stranded refuse if they must not."
_UNKNOWN = {
    "keep": "The import would go ahead, and such appointments would stay booked.",
    "refuse": "The import would be refused. Try again, or give --stranded keep.",
}


def stranded_choice(args: argparse.Namespace) -> "Choice":
    from frontdesk.systems.stranding import default_choice

    given: Choice | None = args.stranded
    return given or default_choice(prune=args.prune)


@dataclass(frozen=True, slots=True)
class _Preview:
    slug: str
    is_new: bool
    differences: "Sequence[Difference]"
    text_diff: str
    found: "StrandingReport | None" = None  # None: there is no practice yet


def previewed(args: argparse.Namespace, text: str) -> _Preview:
    if not has_database():  # the first file, before there is anything to compare it with
        return _as_new(first_file(args, text))

    async def work(context: CommandContext) -> _Preview:
        from frontdesk.audit.trail import append_disclosure
        from frontdesk.store.practice_import import after_import, checked_file, differences, text_diff
        from frontdesk.store.practices import stored_patient_ids, stored_patients
        from frontdesk.systems.stranding import Stranding, opened_system

        now = context.audit.now
        file, stored = await checked_file(context.database, text, now, prune=args.prune)
        if stored is None:
            return _as_new(file)
        slug = file.directory.practice.slug
        practice_id = await context.practice_id(slug)
        numbers = [patient.number for patient in file.patients]
        compared = await stored_patient_ids(context.database, practice_id, numbers)
        if compared:  # the counts tell whether a patient's data equal what the file says
            entry = context.audit.entry(practice_id, "console.compare_patients", compared)
            async with context.database.transaction(practice_id) as connection:
                await append_disclosure(connection, entry)
        patients = {row.number: row for row in await stored_patients(context.database, practice_id, numbers)}
        after = after_import(stored.directory, file.directory, prune=args.prune)
        async with opened_system(context.database, practice_id, stored, os.environ) as system:
            found = await Stranding(stored.directory, after, system).preview(context.database, practice_id, now)
        return _Preview(
            slug,
            is_new=False,
            differences=differences(stored.directory, patients, file, prune=args.prune),
            text_diff=text_diff(stored.directory, file.directory, prune=args.prune),
            found=found,
        )

    return with_database(work)


def first_file(args: argparse.Namespace, text: str) -> "PracticeFile":
    """The file, checked without a database."""
    from datetime import UTC, datetime

    from frontdesk.store.practice_import import parse_in_thread

    return wait_for(parse_in_thread(text, None, datetime.now(UTC), prune=args.prune))


def _as_new(file: "PracticeFile") -> _Preview:
    from frontdesk.store.practice_import import additions

    return _Preview(file.directory.practice.slug, is_new=True, differences=additions(file), text_diff="")


def answer_preview(args: argparse.Namespace, preview: _Preview) -> None:
    choice, found = stranded_choice(args), preview.found
    document: dict[str, object] = {
        "practice": preview.slug,
        "new": preview.is_new,
        "differences": [
            {
                "kind": each.kind,
                **(
                    {"added": len(each.added), "changed": len(each.changed)}
                    if each.kind == "patients"
                    else {"added": list(each.added), "changed": list(each.changed), "removed": list(each.removed)}
                ),
            }
            for each in preview.differences
        ],
        "diff": preview.text_diff,
        "stranded": [] if found is None else stranded_document(found.stranded),
        "refused": found is not None and found.must_be_refused(choice),
    }
    parts = [_summary(preview), preview.text_diff.rstrip()]
    if found is not None and found.stranded:
        parts += [
            f"{counted_stranded(found.stranded, 'would lose')}:\n{stranded_table(found.stranded)}",
            _consequence(found, choice),
        ]
    if found is not None and found.unanswered is not None:
        document["notLookedAt"] = found.unanswered
        unknown = _UNKNOWN["refuse" if found.must_be_refused(choice) else "keep"]
        parts.append(f"{not_checked(found.unanswered)} {unknown}")
    parts.append("This was a dry run: nothing was changed.")
    answer(args, document, "\n\n".join(part for part in parts if part))


def _consequence(found: "StrandingReport", choice: "Choice") -> str:
    if found.must_be_refused(choice):
        return f"The import would be refused. {remedy(found)}"
    return _CONSEQUENCES[choice] if found.can_cancel else _STAY


def remedy(found: "StrandingReport") -> str:
    if found.can_cancel:
        return "Give --stranded keep or --stranded cancel to say what becomes of them."
    return (
        "They are at the practice's FHIR server, where an import cancels nothing: cancel or move them first, or give "
        "--stranded keep."
    )


def not_checked(reason: str) -> str:
    return f"The appointments at the practice's FHIR server could not be checked: {reason}."


def _summary(preview: _Preview) -> str:
    changed = [each for each in preview.differences if not each.is_empty]
    if not changed:
        return (
            f"The file creates {preview.slug}." if preview.is_new else f"The file changes nothing about {preview.slug}."
        )
    rows = [
        (each.kind, *(_named(each, names) for names in (each.added, each.changed, each.removed))) for each in changed
    ]
    title = f"The file creates {preview.slug}:" if preview.is_new else f"The file changes {preview.slug}:"
    return f"{title}\n{table(('KIND', 'ADDED', 'CHANGED', 'REMOVED'), rows, '')}"


def _named(difference: "Difference", names: Sequence[str]) -> str | None:
    """Patients are counted, everything else is named."""
    if not names:
        return None
    return str(len(names)) if difference.kind == "patients" else ", ".join(names)


def counted_stranded(found: "Sequence[Stranded]", verb: str) -> str:
    booked = "it was booked" if len(found) == 1 else "they were booked"
    return f"{counted(len(found), 'future appointment')} {verb} what {booked} for"


def stranded_document(found: "Sequence[Stranded]") -> list[dict[str, object]]:
    return [to_document(each) for each in found]


def stranded_table(found: "Sequence[Stranded]") -> str:
    rows = [
        (
            each.appointment_id,
            f"{each.start:%Y-%m-%d %H:%M}",
            each.time_zone,
            ", ".join(each.loses),
        )
        for each in found
    ]
    return table(("APPOINTMENT", "STARTS", "TIME ZONE", "LOSES"), rows, "")
