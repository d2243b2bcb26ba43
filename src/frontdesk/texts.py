"""Texts for people, in English, where they are defined. The console translates them where it shows them."""


def N_(message: str) -> str:  # noqa: N802 - the usual name, known to the tools of translators
    """Marks a constant for the catalogue and returns it untranslated."""
    return message
