"""`frontdesk audit list --request`: the number and the actor of each record, and that several used the id."""

from datetime import UTC, datetime
from typing import Any

from tests.cli.command_line import CommandLine, on_database

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
NOTE = "Several actors have used this request id: fd_loud, fd_quiet.\n"


def test_a_search_by_request_id_says_when_several_actors_have_used_it(line: CommandLine, harbor: str) -> None:
    async def append(connection: Any) -> None:
        practice = await connection.fetchval("SELECT practice_id FROM practice WHERE slug = $1", harbor)
        for actor, trace in (("fd_quiet", TRACE), ("fd_alone", "0" * 32), *[("fd_loud", TRACE)] * 3):
            await connection.execute(
                "SELECT append_audit($1, $2, $3, 'get_patient', 'executed', '{}', $4)",
                practice, datetime.now(UTC), actor, trace,
            )  # fmt: skip

    on_database(line, append)
    for words in (("--practice", harbor), (), ("--client", "fd_loud"), ("--limit", "1")):
        found = line.run("audit", "list", "--request", TRACE, *words)
        assert (found.status, found.err) == (0, NOTE), words
    heading, *rows = line.run("audit", "list", "--request", TRACE).out.splitlines()
    assert heading.split()[:4] == ["RECORD", "TIME", "PRACTICE", "ACTOR"]
    assert sorted(row.split()[3] for row in rows) == ["fd_loud", "fd_loud", "fd_loud", "fd_quiet"]
    alone = line.json("audit", "list", "--request", "0" * 32)
    assert [(each["actor"], each["requestId"]) for each in alone] == [("fd_alone", "0" * 32)]
    everything = line.json("audit", "list", "--practice", harbor)
    assert len({each["recordId"] for each in everything}) == len(everything)
    assert line.json("audit", "list", "--request", "nothing") == []
