"""Reads heads of audit trails that an operator kept outside the database."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from frontdesk.cli.output import BadInput
from frontdesk.domain.spelling import closest

if TYPE_CHECKING:
    from frontdesk.audit.heads import Head

_HEAD = re.compile(r"(?:([a-z0-9-]+(?:~[0-9]+)?):)?([1-9][0-9]{0,17}):([0-9a-f]{64})\Z")


def kept_heads(
    given: Sequence[str], file: Path | None, practices: Sequence[str], only: str | None
) -> "Mapping[str, set[Head]]":
    """Heads by practice, from options and from a file; of the file, those of one practice if `only` names it.

    A practice that is gone is an error.
    """
    kept: dict[str, set[Head]] = {slug: set() for slug in practices}
    named = [_option(text, practices) for text in given]
    if file is not None:
        named += [(slug, head) for slug, head in _lines(file) if only in (None, slug)]
    for slug, head in named:
        if slug not in kept:
            raise BadInput(f"A head belongs to the practice {slug!r}, which is not here{closest(slug, practices)}.")
        kept[slug].add(head)
    return kept


def _option(text: str, practices: Sequence[str]) -> "tuple[str, Head]":
    from frontdesk.audit.heads import Head

    found = _HEAD.match(text.lower())
    if found is None:
        raise BadInput(f"{text!r} is not a head: one looks like 120:HASH, with the 64 hexadecimal digits of its hash.")
    slug, sequence, digest = found.groups()
    if slug is None and len(practices) != 1:
        raise BadInput("A head without a practice needs --practice, or the practice in front of it: SLUG:120:HASH.")
    return slug or practices[0], Head(int(sequence), bytes.fromhex(digest))


def _lines(file: Path) -> "Iterator[tuple[str, Head]]":
    try:
        lines = file.read_text("utf-8", errors="replace").splitlines()
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}.") from None
    heads = [head for number, line in enumerate(lines, 1) if (head := _head(file, number, line)) is not None]
    if not heads:
        raise BadInput(f"{file} contains no audit head.")
    yield from heads


def _head(file: Path, number: int, line: str) -> "tuple[str, Head] | None":
    """The head of a line; None for other lines of a log."""
    from frontdesk.audit.heads import Head

    try:
        document = json.loads(line)
        text = f"{document['practice']}:{document['sequence']}:{document['hash']}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    found = _HEAD.match(text)
    if found is None:
        raise BadInput(f"{file}:{number}: this is not an audit head, though it has the fields of one.")
    slug, sequence, digest = found.groups()
    return slug, Head(int(sequence), bytes.fromhex(digest))
