"""Links between the documents of the repository lead to files that exist."""

import json
import re
from pathlib import Path

import pytest

from frontdesk import __version__

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "bench").glob("*.md"),
    *(ROOT / "clients").rglob("README.md"),
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_lead_to_files(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", document.read_text())
    assert [link for link in links if "://" not in link and not (document.parent / link).exists()] == []


def test_the_index_lists_every_document() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    documents = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    listed = [path for path in documents if f"({path})" in index or f"({path.parent})" in index]
    assert sorted(documents) == sorted([*listed, Path("README.md")])


def test_every_promise_of_reliability_names_its_tests_and_a_figure() -> None:
    document = ROOT / "docs" / "reliability.md"
    table = document.read_text().partition("## Promises")[2].partition("\n\n| fault |")[2].partition("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()[2:]]
    assert rows
    for fault, _, tests, figure in rows:
        named = re.findall(r"\[(\w+)\]\(([^)]+)\)", tests)
        assert named, fault
        for name, path in named:
            assert f"def {name}(" in (document.parent / path).read_text(), f"{fault}: there is no {name} in {path}"
        assert re.search(r"\d", figure), fault


def test_the_architecture_names_files_that_exist() -> None:
    named = re.findall(r"`([a-z_/]+(?:\.py|/))`", (ROOT / "docs" / "architecture.md").read_text())
    packages = [ROOT / "src" / "frontdesk", *(ROOT / "src" / "frontdesk").rglob("*/")]
    assert [name for name in named if not any((package / name).exists() for package in packages)] == []


@pytest.mark.parametrize("program", ["@modelcontextprotocol/inspector", "mcp-remote"])
def test_the_documents_run_the_version_of_a_program_that_is_tested(program: str) -> None:
    package = json.loads((ROOT / "tests" / "mcp" / "node" / "package.json").read_text())
    run = re.compile(rf'(?:npx |"-y", ")({program}[^\s"`]*)')
    named = [name for path in DOCUMENTS for name in run.findall(path.read_text())]
    assert set(named) == {f"{program}@{package['dependencies'][program]}"}


def test_the_documents_pass_no_token_as_an_argument_to_clients() -> None:
    for path in DOCUMENTS:
        commands = path.read_text().replace("\\\n", " ").splitlines()
        started = [re.sub("'[^']*'", "", line) for line in commands if re.match(r"(exec )?(claude|npx) ", line)]
        shown = [line for line in started if re.search(r"\$\{?(TOKEN|CLIENT_SECRET)", line, re.IGNORECASE)]
        assert shown == [], path


def test_the_registry_entry_has_the_version_of_the_package_and_a_variable_for_the_host() -> None:
    entry = json.loads((ROOT / "server.json").read_text())
    assert entry["version"] == __version__
    assert len(entry["description"]) <= 100
    [remote] = entry["remotes"]
    assert (remote["type"], remote["url"], list(remote["variables"])) == (
        "streamable-http",
        "https://{host}/mcp",
        ["host"],
    )
