"""The steps of CONTRIBUTING for a new operation and a new feature, tried on a copy of the tree.

The feature in `lost_property` has a table, a scope, an operation, a page, settings, an event, a metric and a step.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.architecture.copied_tree import contents, copy_tree, pytest_in, recipe, replace, run
from tests.console.catalogue import read, written

FEATURE = Path(__file__).parent / "lost_property"
GENERATED = ("clients/python/src/", "tests/doors/snapshots/", "src/frontdesk/console/translations/")
FOLDERS = ("src/frontdesk/features/lost_property/", "tests/features/lost_property/")
LIST = "src/frontdesk/features/__init__.py"
TESTS_OF_THE_OPERATION = (
    "tests/operations/test_registry.py",
    "tests/doors/test_openapi.py",
    "tests/doors/test_mcp_tools.py",
    "tests/doors/test_pages.py",
    "tests/clients/test_generated_client.py",
)
TESTS_OF_THE_FEATURE = (
    "tests/architecture/test_audited_acts.py",
    "tests/architecture/test_imports.py",
    "tests/architecture/test_one_path.py",
    "tests/architecture/test_start.py",
    "tests/architecture/test_statements.py",
    "tests/cli/test_client_commands.py",
    "tests/console/test_csrf.py",
    "tests/console/test_guard.py",
    "tests/console/test_isolation.py",
    "tests/console/test_practice_forms.py",
    "tests/console/test_request_ids.py",
    "tests/console/test_templates.py",
    "tests/console/test_translations.py",
    "tests/features",
    "tests/operations/test_audit_sentences.py",
    "tests/practice_file",
    "tests/security/test_isolation_of_tables.py",
    "tests/store/test_migrate.py",
)

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def changed_for_the_operation(tree: Path) -> set[str]:
    return changed_by(tree, add_operation)


@pytest.fixture(scope="module")
def changed_for_the_feature(tree: Path, changed_for_the_operation: set[str]) -> set[str]:
    return changed_by(tree, add_feature)


def test_a_new_operation_needs_its_module_the_registry_and_generated_files_only(
    tree: Path, changed_for_the_operation: set[str]
) -> None:
    generated = {name for name in changed_for_the_operation if not name.startswith("src/frontdesk/operations/")}
    assert generated
    assert {name for name in generated if not name.startswith(GENERATED)} == set()
    refused = pytest_in(tree, "tests/operations/test_registry.py")
    assert refused.returncode == 1
    assert "get_branch" in refused.stdout, "the tests over the registry say what is missing"
    add_to_contract(tree)
    ended = pytest_in(tree, *TESTS_OF_THE_OPERATION)
    assert ended.returncode == 0, ended.stdout


def test_a_new_feature_needs_its_folder_a_line_in_the_list_and_generated_files_only(
    tree: Path, changed_for_the_feature: set[str]
) -> None:
    assert {name for name in changed_for_the_feature if not name.startswith(FOLDERS)} == {
        LIST,
        "docs/users/practice-file.md",
        "src/frontdesk/practice_file/practice-file.schema.json",
    }
    for line in recipe(tree, "check"):
        run(tree, *line)
    ended = pytest_in(tree, "-n", "2", *TESTS_OF_THE_FEATURE)
    assert ended.returncode == 0, ended.stdout


def changed_by(tree: Path, add: Callable[[Path], None]) -> set[str]:
    """The files that differ after something was added and everything generated anew."""
    before = contents(tree)
    add(tree)
    for target in ("generate", "catalogue"):
        for line in recipe(tree, target):
            run(tree, *line)
    translate(tree)
    return {name for name, text in contents(tree).items() if before.get(name) != text}


def translate(tree: Path) -> None:
    """Gives every text that is new the English one as its translation."""
    for path in tree.glob("src/frontdesk/**/translations/*.po"):
        catalogue = read(path)
        for message in catalogue:
            if message.id and not message.string:
                message.string = message.id
        path.write_text(written(path, catalogue), encoding="utf-8")


def add_feature(tree: Path) -> None:
    of_source, of_tests = (tree / folder for folder in FOLDERS)
    shutil.copytree(FEATURE / "feature", of_source)
    of_tests.mkdir()
    shutil.copy(FEATURE / "behaviour.py", of_tests / "test_lost_property.py")
    shutil.copy(FEATURE / "audited.py", of_tests)
    replace(tree / LIST, "\n)", '\n    "lost_property",\n)')


def add_operation(tree: Path) -> None:
    """A copy of the nearest neighbour, and its line in the registry."""
    operations = tree / "src/frontdesk/operations"
    neighbour = (operations / "get_location.py").read_text()
    made = neighbour.replace('"get_location"', '"get_branch"').replace("/locations/{", "/branches/{")
    (operations / "get_branch.py").write_text(made.replace('title="', 'title="Branch: '))
    replace(operations / "__init__.py", "    get_capabilities,\n", "    get_branch,\n    get_capabilities,\n")
    replace(
        operations / "__init__.py",
        "    get_location.OPERATION,\n",
        "    get_location.OPERATION,\n    get_branch.OPERATION,\n",
    )


def add_to_contract(tree: Path) -> None:
    table = tree / "tests/operations/test_registry.py"
    row = "list_providers         GET   /providers "
    replace(table, row, "get_branch GET /branches/{locationId} practices:read read 200\n" + row)
    replace(table, '    "get_location": LOCATION,\n', '    "get_location": LOCATION,\n    "get_branch": LOCATION,\n')
