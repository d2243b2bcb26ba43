"""The schema keeps the rules under which it can be distributed by practice over a Citus cluster."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import frontdesk
from frontdesk.store.distribution import BY_COLUMN, plan_modes, statements_of
from frontdesk.store.migrate import FunctionFile, this_release

TABLES = """
SELECT relname AS name, relrowsecurity AND relforcerowsecurity AS by_practice, EXISTS (
    SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'practice_id'
) AS has_practice
FROM pg_class c WHERE relnamespace = 'frontdesk'::regnamespace AND relkind = 'r'
"""
KEYS = """
SELECT c.relname AS name, ARRAY(
    SELECT a.attname FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
) AS columns
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
WHERE c.relnamespace = 'frontdesk'::regnamespace AND (i.indisunique OR i.indisexclusion)
"""
FOREIGN_KEYS = """
SELECT conrelid::regclass::text AS child, confrelid::regclass::text AS parent, ARRAY(
    SELECT ARRAY[a.attname, b.attname] FROM unnest(conkey, confkey) AS k (child, parent)
    JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = k.child
    JOIN pg_attribute b ON b.attrelid = confrelid AND b.attnum = k.parent
) AS pairs
FROM pg_constraint WHERE contype = 'f' AND connamespace = 'frontdesk'::regnamespace
"""
FUNCTIONS = """
SELECT p.proname AS name, l.lanname AS language, p.prosrc AS text, p.proargnames[1] AS first_argument,
       p.prosecdef AS definer, p.prorettype = 'trigger'::regtype AS is_trigger
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE p.pronamespace = 'frontdesk'::regnamespace AND l.lanname IN ('sql', 'plpgsql')
"""
REFERENCE = {"practice", "client"}  # two of those that are copied to every worker
NOT_OF_A_PRACTICE = {"count_attempt", "attempts_at_cap"}  # They run at the coordinator.


@dataclass(frozen=True)
class Tables:
    names: frozenset[str]
    distributed: Mapping[str, str]  # the column by which each is

    def used_in(self, text: str) -> frozenset[str]:
        found = re.findall(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(?:frontdesk\.)?([a-z_]+)\b", without_comments(text))
        return self.names & set(found)


@pytest.fixture
async def tables(owner: Any) -> Tables:
    rows = await owner.fetch(TABLES)
    names = [row["name"] for row in rows]
    by_practice = [row["name"] for row in rows if row["by_practice"]]
    return Tables(frozenset(names), dict.fromkeys(by_practice, "practice_id") | BY_COLUMN)


async def test_the_schema_can_be_distributed_by_practice(owner: Any, tables: Tables) -> None:
    assert {*REFERENCE, *BY_COLUMN} <= tables.names
    for row in await owner.fetch(TABLES):
        assert row["by_practice"] <= row["has_practice"], f"{row['name']}: row-level security without a practice"
    for key in await owner.fetch(KEYS):
        column = tables.distributed.get(key["name"])
        assert column is None or column in key["columns"], f"{key['name']}: a key without {column}"
    for key in await owner.fetch(FOREIGN_KEYS):
        child, parent = key["child"], key["parent"]
        what = f"{child} refers to {parent}"
        if child in tables.distributed:
            column = tables.distributed[child]
            assert parent in REFERENCE or (parent in tables.distributed and [column, column] in key["pairs"]), what
        elif child in REFERENCE:
            assert parent in REFERENCE, what
        else:
            assert parent not in tables.distributed, what

    for_one_server = defined_in(f for f in this_release().functions if f.name in replaced_files())
    functions = await owner.fetch(FUNCTIONS)
    reading = {f["name"] for f in functions if tables.used_in(f["text"])}
    assert {"commit_write", "changed_busy_times", "append_write_audit"} <= reading
    for function in functions:
        name, used = function["name"], tables.used_in(function["text"])
        if not used or function["is_trigger"] or name in for_one_server:
            continue
        assert function["language"] == "plpgsql", f"{name}: in SQL, and reads tables"
        if not function["definer"] and used & tables.distributed.keys():
            assert function["first_argument"] == "p_practice" or name in NOT_OF_A_PRACTICE, (
                f"{name}: of which practice?"
            )
        for statement in re.split(r";|\b(?:BEGIN|LOOP|THEN|ELSE)\b", without_comments(function["text"])):
            check_statement(name, statement, tables, reading)

    for path in Path(frontdesk.__file__).parent.rglob("*.py"):
        if "INSERT INTO" in (source := path.read_text()):
            for text in re.findall(r'"""(.*?)"""|"([^"\n]*)"', source, re.DOTALL):
                check_statement(path.name, "".join(text), tables, set())


def replaced_files() -> set[str]:
    """Loops over practices and statement triggers: a distributed database has others in their place."""
    return {f.name for f in this_release().of_distributed}


def defined_in(files: Iterable[FunctionFile]) -> set[str]:
    return set(re.findall(r"CREATE OR REPLACE FUNCTION (?:frontdesk\.)?(\w+)", "".join(f.sql for f in files)))


def test_a_distributed_database_has_the_functions_of_each_file_that_it_replaces() -> None:
    assert replaced_files() == {"all_practices", "triggers"}
    plain = {f.name: f for f in this_release().functions}
    for file in this_release().of_distributed:
        missing = defined_in([plain[file.name]]) - defined_in([file])
        # One row trigger does the work of all.
        assert missing <= {"count_calendar_update", "count_new_appointments"}, file.name
        assert "REFERENCING" not in file.sql
        assert file.sql.count("CREATE OR REPLACE TRIGGER") == file.sql.count("FOR EACH ROW")


async def test_statement_triggers_are_made_in_the_replaced_file_only(owner: Any) -> None:
    rows = await owner.fetch("SELECT tgname FROM pg_trigger WHERE tgnewtable IS NOT NULL OR tgoldtable IS NOT NULL")
    plain = next(f for f in this_release().functions if f.name == "triggers")
    assert {row["tgname"] for row in rows} == set(re.findall(r"CREATE OR REPLACE TRIGGER (\w+)", plain.sql))


async def test_no_function_that_is_inlined_returns_a_subscript(owner: Any) -> None:
    """Citus crashes where the value of a SET is one."""
    for function in await owner.fetch(FUNCTIONS):
        if function["language"] == "sql":
            assert not is_subscript(without_comments(function["text"])), function["name"]


async def test_no_trigger_sets_a_subscript(owner: Any) -> None:
    texts = {f["name"]: f["text"] for f in await owner.fetch(FUNCTIONS) if f["is_trigger"]}
    texts |= {file.name: file.sql for file in this_release().of_distributed}
    assert {"count_calendar_change", "triggers"} <= texts.keys()
    for name, text in texts.items():
        for statement in without_comments(text).split(";"):
            assert not set_to_subscript(" ".join(statement.split())), f"{name}: {statement}"


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("(ARRAY[ARRAY[1, v]] || c.recent)[1:9]", True),
        ("before[1:8]", True),
        ("c.recent[1][2]", True),
        ("$2[1]", True),
        ("(a || b)[1:9]::bigint[]", True),
        ("ARRAY[ARRAY[1, v[1]]]", False),
        ("ARRAY[1] || before[1:8]", False),
        ("f(before[1:8])", False),
        ("a + b", False),
    ],
)
def test_a_subscript_as_the_whole_value_is_recognized(value: str, wrong: bool) -> None:
    assert is_subscript(f"SELECT {value};") is wrong
    assert set_to_subscript(f"UPDATE t SET n = n + 1, a = {value} WHERE b = p_ids[1]") is wrong
    assert set_to_subscript(f"INSERT INTO t VALUES (1) ON CONFLICT (b) DO UPDATE SET a = {value}") is wrong


def test_a_text_is_divided_into_its_statements() -> None:
    text = """-- first; this
    SELECT 'a;''b', $$ ; $$;

    DO $x$ BEGIN PERFORM $$;$$; END $x$;
    SELECT 2 -- ; no more
    """
    assert statements_of(text) == ["SELECT 'a;''b', $$ ; $$", "DO $x$ BEGIN PERFORM $$;$$; END $x$", "SELECT 2"]


def check_statement(where: str, statement: str, tables: Tables, reading: set[str]) -> None:
    """What Citus refuses of a statement on the tables of a practice."""
    if not tables.used_in(statement) & tables.distributed.keys():
        return
    words = " ".join(statement.split())
    assert not re.search(r"\bINSERT INTO (?!.*\bVALUES\b).*\bSELECT\b", words), f"{where}: INSERT ... SELECT: {words}"
    assert not re.search(r"\bCASE (p|v)_\w+ WHEN\b", words), f"{where}: CASE of a parameter: {words}"
    assert ":]" not in words, f"{where}: a slice without an end, at which Citus crashes: {words}"
    assert not set_to_subscript(words), f"{where}: a SET to a subscript, at which Citus crashes: {words}"
    called = {name for name in re.findall(r"\b(\w+)\(", words) if name in reading}
    assert not called or words.startswith("IF"), f"{where}: a query calls {called}, which reads tables: {words}"


def is_subscript(text: str) -> bool:
    """Whether a value, or that of a SELECT, is a subscript as a whole."""
    value = re.sub(r"^\s*SELECT\s+|(?:::[\w\[\]]+)?\s*;?\s*$", "", text)
    while re.search(r"\([^()]*\)|ARRAY\[[^\[\]]*\]", value):  # from the inside out
        value = re.sub(r"\([^()]*\)", "x", re.sub(r"ARRAY\[[^\[\]]*\]", "x", value))
    return bool(re.fullmatch(r"[\w.$]+(?:\[[^\[\]]*\])+", value))


def set_to_subscript(statement: str) -> bool:
    """Whether a statement sets a column to a subscript."""
    found = re.search(r"\bSET (.*?)(?: WHERE | FROM | RETURNING |$)", statement)
    if found is None:
        return False
    parts, depth = [""], 0
    for char in found[1]:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return any(is_subscript(part.partition("=")[2].strip()) for part in parts)


def without_comments(text: str) -> str:
    return re.sub(r"--[^\n]*", "", text)


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        ("13.0.5", "auto"),
        ("13.0.6", "force_custom_plan"),
        ("13.1.1", "auto"),
        ("13.1.2", "force_custom_plan"),
        ("13.2.0", "auto"),
        ("13.2.1", "force_custom_plan"),
        ("13.2.2", "force_custom_plan"),
        ("13.20.0", "force_custom_plan"),
        ("14.0.1", "force_custom_plan"),
        ("12.1.12", "force_custom_plan"),
    ],
)
async def test_only_versions_that_are_known_to_reuse_plans_may_keep_them(version: str, wanted: str) -> None:
    class Coordinator:
        async def fetchval(self, statement: str, *_args: str) -> Any:
            if statement == "SELECT citus_version()":
                return f"Citus {version} on x86_64-pc-linux-gnu, compiled by gcc"
            return None

    assert await plan_modes(Coordinator()) == (wanted, "auto")
