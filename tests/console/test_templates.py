"""What is true of every template, script and style sheet, so that the strict policy holds and nothing goes out raw."""

import re
from importlib.resources import files
from pathlib import Path

FOLDER = Path(str(files("frontdesk.console")))
FEATURES = Path(str(files("frontdesk.features")))
TEMPLATES = sorted([*FOLDER.glob("templates/**/*.html"), *FEATURES.glob("*/templates/*.html")])
SCRIPTS = sorted([*FOLDER.glob("static/*.js"), *FEATURES.glob("*/static/*.js")])
STYLES = sorted([*FOLDER.glob("static/*.css"), *FEATURES.glob("*/static/*.css")])
OF_FEATURES = (
    path for path in FEATURES.glob("**/*.py") if path.name != "commands.py"
)  # of the command line, in English
MODULES = sorted([*FOLDER.glob("**/*.py"), *OF_FEATURES])

FORBIDDEN = {
    "an inline script": re.compile(r"<script(?![^>]*\bsrc=)", re.IGNORECASE),
    "an inline style sheet": re.compile(r"<style\b", re.IGNORECASE),
    "a style attribute": re.compile(r"\sstyle\s*=", re.IGNORECASE),
    "an event attribute": re.compile(r"<[^>]*\son[a-z]+\s*=", re.IGNORECASE),
    "a script address": re.compile(r"javascript:", re.IGNORECASE),
    "something from the internet": re.compile(r"""(?:src|href|action)\s*=\s*["']?(?:https?:)?//""", re.IGNORECASE),
    "unescaped output": re.compile(r"\|\s*safe\b|autoescape\s+false|\bMarkup\b", re.IGNORECASE),
    "a form that sends itself elsewhere": re.compile(r"<base\b|formaction", re.IGNORECASE),
}


def test_there_is_something_to_look_at() -> None:
    assert len(TEMPLATES) > 10
    assert SCRIPTS
    assert STYLES


def test_a_template_holds_nothing_that_the_policy_forbids() -> None:
    for path in TEMPLATES:
        text = re.sub(r"\{#.*?#\}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert [what for what, pattern in FORBIDDEN.items() if pattern.search(text)] == [], path.name


def test_a_script_or_style_sheet_fetches_and_builds_nothing_raw() -> None:
    for path in (*SCRIPTS, *STYLES):
        text = path.read_text(encoding="utf-8")
        text = text.replace(".innerHTML = html; // of our own server, escaped there", "")
        found = re.search(
            r"\binnerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?://|@import", text
        )
        assert found is None, (path.name, found)


def test_no_page_makes_markup_past_the_templates() -> None:
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        assert "Markup(" not in text or path.name == "charts.py", f"{path.name}: only drawings of our own numbers"
        assert "HTMLResponse(" not in text or path.name == "rendering.py", path.name
