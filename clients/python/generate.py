"""Generates the client from the OpenAPI document and the error catalogue, and the sync client from the async one.

With `--check` it only lists files that are out of date.
"""

import re
import subprocess
import sys
from pathlib import Path

from generator.methods import client
from generator.problems import problem_names, problems
from generator.records import record_names, records
from generator.writing import MARK, head

from frontdesk.doors.openapi import openapi_document
from frontdesk.settings import Settings

PACKAGE = Path(__file__).parent / "src" / "frontdesk_client"
HAND_WRITTEN = ("pages.py", "proposals.py", "session.py")

_TO_SYNC = (
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basync_sleep\b", "sleep"),
    (r"\b_async\b", "_sync"),
    (r"__a(enter|exit|iter)__", r"__\1__"),
    (r"\ba(iter_bytes|close)\b", r"\1"),
    (r"for item in (.+):\n +yield item\n", r"yield from \1\n"),
)
_RUFF = [sys.executable, "-m", "ruff"]
_OURS = ["--config", 'lint.isort.known-first-party = ["frontdesk_client"]']
_TIDY = (["check", "--quiet", "--select", "F401,I", "--fix-only", *_OURS], ["format", "--quiet"])


def generated(package: Path) -> dict[str, str]:
    """All generated files, by path within the package."""
    document = openapi_document(Settings(base_url="http://127.0.0.1:8080"))
    made = client(document)
    files = {
        "__init__.py": _exports(record_names(document)),
        "problems.py": problems(),
        "records.py": records(document),
        "_async/client.py": made,
        "_sync/__init__.py": f'"""The plain client, made from the async one."""\n\n{MARK}',
        "_sync/client.py": _to_sync(made),
    }
    for name in HAND_WRITTEN:
        documentation, _, rest = (package / "_async" / name).read_text().partition('"""\n')
        files[f"_sync/{name}"] = _to_sync(f'{documentation}"""\n\n{MARK}{rest}')
    return {name: _tidy(name, text) for name, text in files.items()}


def out_of_date(package: Path) -> list[str]:
    """Files that differ from the generated text, and files that are no longer generated."""
    files = generated(package)
    there = {path.relative_to(package).as_posix(): path.read_text() for path in package.rglob("*.py")}
    left_over = {name for name, text in there.items() if MARK in text and name not in files}
    return sorted({name for name, text in files.items() if there.get(name) != text} | left_over)


def _exports(record_names: list[str]) -> str:
    sources = {
        "_async.client": ["AsyncFrontdesk"],
        "_async.pages": ["AsyncPage"],
        "_async.proposals": ["AsyncProposal"],
        "_sync.client": ["Frontdesk"],
        "_sync.pages": ["Page"],
        "_sync.proposals": ["Proposal"],
        "_version": ["__version__"],
        "null": ["NULL"],
        "errors": ["AnswerLost", "ExecutedAtOnce", "FrontdeskError"],
        "problems": problem_names(),
        "records": record_names,
    }
    imports = [f"from frontdesk_client.{module} import {', '.join(names)}" for module, names in sources.items()]
    names = sorted(
        (name for names in sources.values() for name in names), key=lambda name: (name != name.upper(), name)
    )
    documentation = "The Python client of frontdesk: a medical practice's calendar."
    return head(documentation, "\n".join(imports)) + f"\n__all__ = {names}\n"


def _to_sync(text: str) -> str:
    for pattern, replacement in _TO_SYNC:
        text = re.sub(pattern, replacement, text)
    return text


def _tidy(name: str, text: str) -> str:
    for step in _TIDY:
        command = [*_RUFF, *step, "--stdin-filename", str(PACKAGE / name), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout  # noqa: S603
    return text


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--check"]:
        wrong = out_of_date(Path(arguments[1]) if arguments[1:] else PACKAGE)
        if wrong:
            sys.exit(f"Out of date: {', '.join(wrong)}. Run clients/python/generate.py and commit the result.")
        return
    for name, text in generated(PACKAGE).items():
        (PACKAGE / name).write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
