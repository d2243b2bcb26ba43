"""Normalises names and phone numbers for comparison."""

import unicodedata

# Apostrophes and dots do not separate words: O'Neil is oneil and J.R. is jr. They are removed before decomposition,
# because an accent used as an apostrophe decomposes into a space, and after it, because some letters decompose into an
# apostrophe.
_INSIDE_WORDS = dict.fromkeys(map(ord, "'’‘‛＇´`′ʹʻʼʽʾʿ.·"))


def words(text: str) -> list[str]:
    """The normalised words of a text: 'Dr. José  O’Neil-Smith' gives dr, jose, oneil, smith."""
    decomposed = unicodedata.normalize("NFKD", text.translate(_INSIDE_WORDS).casefold())
    kept = []
    for char in decomposed.translate(_INSIDE_WORDS):
        category = unicodedata.category(char)
        if category[0] in "LN":
            kept.append(char)
        elif category[0] != "M" and category != "Cf":  # accents and invisible marks do not separate words
            kept.append(" ")
    return "".join(kept).casefold().split()


def digits(text: str) -> str:
    """The decimal digits of a phone number, as ASCII: '+1 (555) 010-0199' gives 15550100199."""
    return "".join(str(unicodedata.decimal(char)) for char in text if char.isdecimal())
