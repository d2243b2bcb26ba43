"""Writes the catalogues of the console's texts: `python -m tests.console.catalogue`."""

from importlib.resources import files
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from frontdesk.audit.actions import actions
from frontdesk.audit.sentences import Action
from frontdesk.domain.booking_rules import RULES
from frontdesk.domain.errors import CATALOGUE, HOLD_ENDED, PATIENT_EXISTS, PATIENT_OVERLAP
from frontdesk.operations import every_operation

SOURCES = Path(str(files("frontdesk")))
FOLDER = SOURCES / "console" / "translations"
TEMPLATE = FOLDER / "console.pot"
CATALOGUES = sorted(FOLDER.glob("*.po"))
_METHODS = [
    ("console/templates/**.html", "jinja2.ext:babel_extract"),
    ("console/**.py", "python"),
    ("desk/**.py", "python"),
    ("features/**.py", "python"),
    ("operations/**.py", "python"),
    ("engine/intents.py", "python"),
    ("access/staff/**.py", "python"),
    ("access/assistants/connections.py", "python"),
    ("access/clients/validation.py", "python"),
    ("domain/booking_rules.py", "python"),
]
EXTRACTED_MODULES = sorted(
    path for pattern, kind in _METHODS if kind == "python" for path in SOURCES.glob(pattern.replace("**.py", "**/*.py"))
)
_OPTIONS = {"console/templates/**.html": {"trimmed": "true", "silent": "false"}}
_KEYWORDS = {"_": None, "gettext": None, "N_": None, "ngettext": (1, 2), "pgettext": ((1, "c"), 2)}
# What the other parts of the service say to the console: `frontdesk.console.domain_texts` translates it.
_SAID = {"Problem": (2,), "StaffError": None, "ClientError": (1,), "BrokenRule": (2,), "declined": None}
EXTRACTED_CALLS = _KEYWORDS | _SAID


def collected() -> Catalog:
    """The texts of the console, in English."""
    catalog = Catalog()
    found = extract_from_dir(SOURCES, _METHODS, _OPTIONS, EXTRACTED_CALLS, comment_tags=(), strip_comment_tags=True)
    for file, _line, message, _comments, context in found:
        catalog.add(message, None, [(file, 0)], context=context)
    for kind in CATALOGUE.values():
        for text in (kind.title, kind.meaning, kind.retry):
            catalog.add(text, None, [("domain/errors.py", 0)])
    for text in (PATIENT_OVERLAP, HOLD_ENDED, PATIENT_EXISTS):
        catalog.add(text, None, [("domain/errors.py", 0)])
    for recorded in (*every_operation().values(), *actions().values()):
        sentences = () if recorded.audit is None else (recorded.audit.done, recorded.audit.with_names)
        for text in filter(None, (recorded.title, *sentences)):
            place = "audit/actions" if isinstance(recorded, Action) else "operations"
            catalog.add(text, None, [(place, 0)])
    for text in RULES.values():
        catalog.add(text, None, [("domain/booking_rules.py", 0)])
    return catalog


def written(path: Path, catalog: Catalog) -> str:
    """With the header that the file has, and without line numbers: a change elsewhere changes nothing."""
    header = path.read_text(encoding="utf-8").partition("\n\n")[0]
    target = BytesIO()
    write_po(target, catalog, width=120, ignore_obsolete=True, include_lineno=False, omit_header=True)
    return f"{header}\n\n{target.getvalue().decode().lstrip()}"


def read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.stem if path.suffix == ".po" else None)


def main() -> None:
    template = collected()
    for path in (TEMPLATE, *CATALOGUES):
        catalog = read(path)
        catalog.update(template, no_fuzzy_matching=True)
        path.write_text(written(path, catalog), encoding="utf-8")


if __name__ == "__main__":
    main()
