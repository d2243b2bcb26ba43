"""Texts for people, in English, where they are defined. The console translates them where it shows them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(init=False, slots=True)
class Text:
    """A sentence with placeholders by name, and their values. A sentence without placeholders is a plain string."""

    template: str
    values: Mapping[str, object]

    def __init__(self, template: str, /, **values: object) -> None:
        self.template, self.values = template, values

    def __str__(self) -> str:
        return self.template % self.values

    def with_values(self, **values: object) -> "Text":
        return Text(self.template, **{**self.values, **values})


class ExplainedError(Exception):
    """One sentence for people says what is wrong."""

    def __init__(self, text: str | Text) -> None:
        super().__init__(str(text))
        self.text = text


def N_(message: str) -> str:  # noqa: N802 - the usual name, known to the tools of translators
    """Marks a constant for the catalogue and returns it untranslated."""
    return message
