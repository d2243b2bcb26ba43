"""Errors in a practice file: the path and the violated rule, never the value."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from frontdesk.texts import Text

NOT_A_NUMBER = Text("%(field)s must be a whole number")
Steps = tuple[str | int, ...]  # the keys and list indexes that lead to a value; () is the whole document


@dataclass(frozen=True)
class FileError:
    path: str  # like providers[2].hours[0].to; $ is the whole document
    text: str | Text  # a template has %(field)s where it names the field
    line: int | None = field(default=None, compare=False)  # from 1; None: not known
    column: int | None = field(default=None, compare=False)

    @property
    def message(self) -> str:
        """Without the name of the field, which stands at the end of the path."""
        return str(self.text.with_values(field="")).lstrip() if isinstance(self.text, Text) else self.text


class PracticeFileError(Exception):
    """The text is not a valid practice file; carries every error in document order."""

    def __init__(self, errors: Iterable[FileError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(f"{error.path}: {error.message}" for error in self.errors))


@dataclass(frozen=True)
class Finding:
    """An error with its path as separate steps."""

    steps: Steps
    text: str | Text
    repeated: bool = False  # about the last key of this name, and not the first


def position(document: object, steps: Steps) -> tuple[int, ...]:
    """Sort key for document order; a missing key comes after all keys of its parent."""
    indexes = []
    here = document
    for step in steps:
        if isinstance(here, dict):
            indexes.append(list(here).index(step) if step in here else len(here))
            here = here.get(step)
        elif isinstance(here, list) and isinstance(step, int):
            indexes.append(step)
            here = here[step] if step < len(here) else None  # it was in another value of a repeated key
    return tuple(indexes)
