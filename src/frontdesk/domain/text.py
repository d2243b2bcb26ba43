"""Which characters text may contain: none that people cannot see, because they carry instructions to models unseen.

Joiners and variation selectors are allowed where the writing of a script needs them, and in emoji.
"""

import unicodedata

from frontdesk.texts import N_

CONTROL = N_("%(field)s must not contain control characters")
INVISIBLE = N_("%(field)s must not contain invisible or direction-changing characters")

_JOINERS = "\u200c\u200d"
# Scripts in which a joiner between two letters changes how a word is written, by the first word of a character's name.
_JOINED_SCRIPTS = frozenset(
    ("ADLAM", "ARABIC", "BENGALI", "DEVANAGARI", "GUJARATI", "GURMUKHI", "KANNADA", "KHMER", "MALAYALAM", "MONGOLIAN",
     "MYANMAR", "NKO", "ORIYA", "SINHALA", "SYRIAC", "TAMIL", "TELUGU")
)  # fmt: skip
_VIRAMA = 9  # the canonical combining class
_EMOJI_SELECTORS = "\ufe0e\ufe0f"
_OTHER_SYMBOLS = frozenset("‼⁉ℹ↔⤴⤵◻◼◽◾〰〽")  # with emoji variants (Unicode's emoji-variation-sequences.txt)
_KEYS, _KEYCAP = frozenset("#*0123456789"), "\u20e3"
_SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_MONGOLIAN_SELECTORS = "\u180b\u180c\u180d\u180f"
_HAN = ("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH")
# Few of the selectors are registered for ideographs. All of them would encode a byte behind each ideograph.
_HAN_SELECTORS = frozenset(map(chr, (*range(0xFE00, 0xFE03), *range(0xE0100, 0xE0120))))

_CONTROL_CATEGORIES = frozenset(("Cc", "Cs"))
_INVISIBLE_CATEGORIES = frozenset(("Cf", "Co", "Zl", "Zp"))
# Letters, marks and unassigned code points that are not displayed either (Default_Ignorable_Code_Point).
_IGNORABLE = frozenset(
    (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0, *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000))
)


def character_error(text: str) -> str | None:
    """What is wrong with the characters of a field, None if nothing is."""
    if text.isascii() and text.isprintable():
        return None
    errors = {_error(text, at) for at in range(len(text))}
    return CONTROL if CONTROL in errors else INVISIBLE if INVISIBLE in errors else None


def cleaned(text: str) -> str:
    """The text without what `character_error` refuses. Control characters and line separators become spaces."""
    if text.isascii() and text.isprintable():
        return text
    kept = []
    for at, char in enumerate(text):
        if _error(text, at) is None:
            kept.append(char)
        elif unicodedata.category(char) in ("Cc", "Zl", "Zp"):
            kept.append(" ")
    return "".join(kept)


def _error(text: str, at: int) -> str | None:
    char = text[at]
    category = unicodedata.category(char)
    if category in _CONTROL_CATEGORIES:
        return CONTROL
    if char in _JOINERS:
        return None if _joins(text, at) else INVISIBLE
    if is_variation_selector(char):
        return None if _selects(text, at) else INVISIBLE
    noncharacter = category == "Cn" and (ord(char) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(char) <= 0xFDEF)
    if category in _INVISIBLE_CATEGORIES or ord(char) in _IGNORABLE or noncharacter:
        return INVISIBLE
    return None


def _joins(text: str, at: int) -> bool:
    """Whether a joiner is between two letters of a script that needs it, behind a virama, or inside an emoji."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if _is_symbol(after) and text[at] == "\u200d":
        return _is_symbol(before) or (before != "" and before in "\ufe0f" + _SKIN_TONES)
    script = _script(before)
    if script not in _JOINED_SCRIPTS:
        return False
    return script == _script(after) or unicodedata.combining(before) == _VIRAMA


def _selects(text: str, at: int) -> bool:
    """Whether a variation selector follows a character with variants: an ideograph, a symbol, the key of a keycap, a
    Mongolian letter."""
    char, before = text[at], text[at - 1 : at]
    if not before:
        return False
    if char in _EMOJI_SELECTORS:
        return _is_symbol(before) or (before in _KEYS and text[at + 1 : at + 2] == _KEYCAP)
    if char in _MONGOLIAN_SELECTORS:
        return _script(before) == "MONGOLIAN" and not is_variation_selector(before)
    return char in _HAN_SELECTORS and unicodedata.name(before, "").startswith(_HAN)


def is_variation_selector(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef" or char in _MONGOLIAN_SELECTORS


def _is_symbol(char: str) -> bool:
    return char != "" and (unicodedata.category(char) == "So" or char in _OTHER_SYMBOLS)


def _script(char: str) -> str | None:
    """The script of a letter or mark, None for anything else."""
    if not char or unicodedata.category(char)[0] not in "LM":
        return None
    return unicodedata.name(char, "").partition(" ")[0]
