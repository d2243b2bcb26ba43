"""Writes the catalogues of the console's texts: `python -m tests.console.catalogue`."""

from collections.abc import Iterator
from importlib.resources import files
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from frontdesk.audit.actions import actions
from frontdesk.audit.sentences import Action
from frontdesk.domain.errors import CATALOGUE
from frontdesk.feature import features
from frontdesk.operations import every_operation

SOURCES = Path(str(files("frontdesk")))
FOLDERS = {"console": SOURCES / "console", **{feature.name: feature.folder for feature in features()}}  # by owner
_METHODS = [
    ("console/templates/**.html", "jinja2.ext:babel_extract"),
    ("features/**/templates/**.html", "jinja2.ext:babel_extract"),
    ("console/**.py", "python"),
    ("desk/**.py", "python"),
    ("features/**.py", "python"),
    ("operations/**.py", "python"),
    ("engine/**.py", "python"),
    ("practice_file/**.py", "python"),
    ("systems/**.py", "python"),
    ("access/staff/**.py", "python"),
    ("outbound/targets.py", "python"),
    ("outbound/webhooks/endpoints.py", "python"),
    ("access/assistants/connections.py", "python"),
    ("access/clients/validation.py", "python"),
    ("domain/**.py", "python"),
]
EXTRACTED_MODULES = sorted(
    path for pattern, kind in _METHODS if kind == "python" for path in SOURCES.glob(pattern.replace("**.py", "**/*.py"))
)
_OPTIONS = {
    pattern: {"trimmed": "true", "silent": "false"} for pattern, kind in _METHODS if kind == "jinja2.ext:babel_extract"
}
_KEYWORDS = {"_": None, "gettext": None, "N_": None, "ngettext": (1, 2), "pgettext": ((1, "c"), 2)}
# What the other parts of the service say to the console.
_SAID = {
    "Text": None,
    "Problem": (2,),
    "StaffError": None,
    "ClientError": (1,),
    "TargetError": None,
    "BrokenRule": (2,),
    "declined": None,
}
EXTRACTED_CALLS = _KEYWORDS | _SAID


def template_of(owner: str) -> Path:
    return FOLDERS[owner] / "translations" / f"{owner}.pot"


def catalogues_of(owner: str) -> list[Path]:
    return [
        FOLDERS[owner] / "translations" / path.name
        for path in sorted((FOLDERS["console"] / "translations").glob("*.po"))
    ]


def collected() -> dict[str, Catalog]:
    """The texts in English, by owner: the console or a feature. A text that the console has is not collected again."""
    catalogs = {owner: Catalog() for owner in FOLDERS}
    for owner, text, place, context in sorted(_found(), key=lambda found: found[0] != "console"):
        if owner == "console" or catalogs["console"].get(_id(text), context) is None:
            catalogs[owner].add(text, None, [(place, 0)], context=context)
    return catalogs


def _id(text: str | tuple[str, ...]) -> str:
    return text if isinstance(text, str) else text[0]


def _found() -> Iterator[tuple[str, str | tuple[str, ...], str, str | None]]:
    """Owner, text, place and context of each text."""
    found = extract_from_dir(SOURCES, _METHODS, _OPTIONS, EXTRACTED_CALLS, comment_tags=(), strip_comment_tags=True)
    for file, _line, message, _comments, context in found:
        owner = file.split("/")[1] if file.startswith("features/") else "console"
        yield (owner if owner in FOLDERS else "console"), message, file, context
    for kind in CATALOGUE.values():
        for text in (kind.title, kind.meaning, kind.retry):
            yield "console", text, "domain/errors.py", None
    of_features = {
        recorded.name: feature.name
        for feature in features()
        for recorded in (*feature.parts.operations, *feature.parts.actions)
    }
    of_features |= {
        operation.name: feature.name
        for feature in features()
        if feature.parts.pending_appointments is not None
        for operation in feature.parts.pending_appointments.operations
    }
    for recorded in (*every_operation().values(), *actions().values()):
        owner = of_features.get(recorded.name)
        place = f"features/{owner}" if owner else "audit/actions" if isinstance(recorded, Action) else "operations"
        sentences = () if recorded.audit is None else (recorded.audit.done, recorded.audit.with_names)
        for text in filter(None, (recorded.title, *sentences)):
            yield owner or "console", text, place, None


def written(path: Path, catalog: Catalog) -> str:
    """With the header that the file has, and without line numbers: a change elsewhere changes nothing."""
    header = path.read_text(encoding="utf-8").partition("\n\n")[0].rstrip()
    target = BytesIO()
    write_po(target, catalog, width=120, ignore_obsolete=True, include_lineno=False, omit_header=True)
    return f"{header}\n\n{target.getvalue().decode().lstrip()}"


def read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.stem if path.suffix == ".po" else None)


def main() -> None:
    """Writes the catalogues of all owners; a new one begins with the headers of the console's."""
    for owner, template in collected().items():
        ours = [
            (template_of("console"), template_of(owner)),
            *zip(catalogues_of("console"), catalogues_of(owner), strict=True),
        ]
        for of_console, path in ours:
            if not path.exists():
                path.parent.mkdir(exist_ok=True)
                _comment, start, header = of_console.read_text(encoding="utf-8").partition('msgid ""')
                path.write_text(f"{start}{header.partition(chr(10) * 2)[0]}\n", encoding="utf-8")
            catalog = read(path)
            catalog.update(template, no_fuzzy_matching=True)
            path.write_text(written(path, catalog), encoding="utf-8")


if __name__ == "__main__":
    main()
