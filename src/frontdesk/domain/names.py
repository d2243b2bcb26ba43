"""Normalises names and phone numbers for comparison."""

import unicodedata

from frontdesk.domain.text import is_variation_selector

# An accent used as an apostrophe decomposes into a space, and some letters decompose into an apostrophe, so apostrophes
# and dots are unified before and after decomposition.
_APOSTROPHES = str.maketrans(dict.fromkeys("'’‘‛＇´`′ʹʻʼʽʾʿ.·", "'"))
# Letters that do not decompose, as people usually transcribe them.
_TRANSCRIPTIONS = str.maketrans(
    {
        "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "ħ": "h", "ŋ": "ng",
        "ŧ": "t", "ĸ": "k", "ə": "e", "ɛ": "e", "ɔ": "o", "ɓ": "b", "ɖ": "d", "ɗ": "d", "ƙ": "k", "ƴ": "y",
    }
)  # fmt: skip


def words(text: str, *, marks: bool = False) -> list[str]:
    """The normalised words of a text: 'Dr. José  O’Neil-Smith' gives dr, jose, oneil, smith.

    `marks`: with vowel signs and the like, without which रीमा and राम are the same letters.
    """
    return _normalised(text, marks=marks).replace("'", "").replace("-", " ").split()


def word_parts(text: str) -> list[list[str]]:
    """The words with marks, split at their punctuation: 'Dr. O’Neil-Smith' gives [dr], [o, neil, smith]."""
    unsplit = _normalised(text, marks=True).replace("'", "-").split()
    found = ([part for part in word.split("-") if part] for word in unsplit)
    return [parts for parts in found if parts]


def has_letter(text: str) -> bool:
    return any(char.isalpha() for word in words(text) for char in word)


def _normalised(text: str, *, marks: bool) -> str:
    """Decomposed letters and digits without case and accents, ' for apostrophes and dots, - for other punctuation."""
    decomposed = unicodedata.normalize("NFKD", text.translate(_APOSTROPHES).casefold()).translate(_APOSTROPHES)
    kept = []
    for char in decomposed.casefold().translate(_TRANSCRIPTIONS):
        category = unicodedata.category(char)
        if category[0] in "LN" or char == "'" or (marks and _is_spelling(char, category)):
            kept.append(char)
        elif category[0] == "Z" or char.isspace():
            kept.append(" ")
        elif category[0] != "M" and category != "Cf":  # marks and invisible characters do not separate words
            kept.append("-")
    return "".join(kept)


def _is_spelling(char: str, category: str) -> bool:
    """Whether a combining mark is part of the spelling: vowel signs, viramas, Thai tones and the voicing of kana.

    Accents, and the nuktas and points that writers of Hindi, Hebrew, Arabic and Syriac may omit, are recognised by
    their combining classes.
    """
    combining = unicodedata.combining(char)
    is_accent = combining in (1, 7) or 10 <= combining <= 36 or combining >= 200
    return category in ("Mn", "Mc") and not is_accent and not is_variation_selector(char)


def digits(text: str) -> str:
    """The decimal digits of a phone number, as ASCII: '+1 (555) 010-0199' gives 15550100199."""
    return "".join(str(unicodedata.decimal(char)) for char in text if char.isdecimal())
