"""Practices that a command names by their slug."""

from frontdesk.cli.connection import CommandContext
from frontdesk.cli.output import BadInput
from frontdesk.domain.spelling import closest


async def known_practice(context: CommandContext, slug: str) -> int:
    """The id of the practice. Raises BadInput with the closest slug if there is no such practice."""
    from frontdesk.store.practices import practice_id_of

    practice_id = await practice_id_of(context.database, slug)
    if practice_id is None:
        raise await no_practice(context, slug)
    return practice_id


async def no_practice(context: CommandContext, slug: str) -> BadInput:
    from frontdesk.store.practices import list_practices

    slugs = [practice.slug for practice in await list_practices(context.database)]
    return BadInput(f"There is no practice {slug!r}{closest(slug, slugs)}.")
