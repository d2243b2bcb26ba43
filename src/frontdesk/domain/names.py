"""How text written by people is compared: without regard to case, accents, punctuation and extra space."""

import unicodedata

# Apostrophes in their many spellings and dots are part of a word: O'Neil is oneil and J.R. is jr. They go before the
# text is decomposed, because a free-standing accent used as an apostrophe decomposes into a space, and again after it,
# because some letters decompose into an apostrophe.
_INSIDE_WORDS = dict.fromkeys(map(ord, "'’‘‛＇´`′ʹʻʼʽʾʿ.·"))


def words(text: str) -> list[str]:
    """The folded words of a text: 'Dr. José  O’Neil-Smith' gives dr, jose, oneil, smith."""
    decomposed = unicodedata.normalize("NFKD", text.translate(_INSIDE_WORDS).casefold())
    kept = []
    for char in decomposed.translate(_INSIDE_WORDS):
        category = unicodedata.category(char)
        if category[0] in "LN":
            kept.append(char)
        elif category[0] != "M" and category != "Cf":  # accents and invisible marks do not part words; all else does
            kept.append(" ")
    return "".join(kept).casefold().split()


def digits(text: str) -> str:
    """The decimal digits of a phone number, as ASCII: '+1 (555) 010-0199' gives 15550100199."""
    return "".join(str(unicodedata.decimal(char)) for char in text if char.isdecimal())
