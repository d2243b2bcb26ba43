"""`frontdesk client` and `frontdesk keys`: who may call, and the keys behind it."""

import re

import pytest

from frontdesk.access.clients.scopes import SCOPES, every_scope, extension_scopes
from frontdesk.access.keys.ring import PURPOSES
from tests.cli.command_line import CommandLine

ADD = ("client", "add", "--practice", "harbor", "--name", "Voice agent")
NO_SCOPE = (
    f"frontdesk client add: give --scope for each scope that the client needs ({', '.join(every_scope())}), "
    f"or --scope all for all but {', '.join(extension_scopes())}."
)

pytestmark = pytest.mark.usefixtures("harbor")


def test_an_added_client_is_its_id_and_its_secret_and_the_secret_is_never_shown_again(line: CommandLine) -> None:
    added = line.json(*ADD, "--grant", "agent", "--scope", "all")
    assert list(added) == ["clientId", "clientSecret"]
    shown = line.json("client", "show", added["clientId"])
    assert shown["grant"] == "agent"
    assert shown["scopes"] == list(SCOPES)
    assert (shown["perMinute"], shown["quota"], shown["disabled"]) == (600, 1_000_000, False)
    assert [secret["retiresAt"] for secret in shown["secrets"]] == [None]
    everything = line.run("client", "list").out + line.run("client", "show", added["clientId"]).out
    assert added["clientId"] in everything
    assert added["clientSecret"] not in everything


def test_scopes_and_limits_are_what_was_asked_for(line: CommandLine) -> None:
    words = ("--scope", "slots:read", "--scope", "practices:read", "--per-minute", "5", "--quota", "100")
    client = line.json(*ADD, "--grant", "integration", *words)["clientId"]
    shown = line.json("client", "show", client)
    assert (shown["scopes"], shown["perMinute"], shown["quota"]) == (["practices:read", "slots:read"], 5, 100)
    changed = line.json("client", "set-limits", client, "--quota", "200")
    assert (changed["perMinute"], changed["quota"]) == (5, 200)
    assert line.run("client", "set-limits", client).status == 2
    own = {"patientsPerHour": 0, "patientsPerDay": 30, "matchMisses": 3, "knownPatientsOnly": True}
    own |= {"writesPerHour": 9, "upcomingPerPatient": 8}
    assert changed["accessLimits"] == dict.fromkeys(own), "as the practice says"
    words = (
        "--patients-per-hour",
        "0",
        "--patients-per-day",
        "30",
        "--match-misses",
        "3",
        "--known-patients-only",
        "yes",
        "--writes-per-hour",
        "9",
        "--upcoming-per-patient",
        "8",
    )
    changed = line.json("client", "set-limits", client, *words)
    assert changed["accessLimits"] == own
    changed = line.json("client", "set-limits", client, "--patients-per-day", "practice", "--match-misses", "4")
    assert changed["accessLimits"] == {**own, "patientsPerDay": None, "matchMisses": 4}
    shown = line.run("client", "show", client).out
    assert re.search(r"Patients an hour +unlimited\nPatients a day +as the practice\n", shown)
    assert line.run("client", "forget-misses", client).status == 0
    for words in (("--patients-per-hour", "-1"), ("--patients-per-day", "many"), ("--known-patients-only", "maybe")):
        assert line.run("client", "set-limits", client, *words).status == 2


def test_a_client_that_cannot_be_is_bad_input_and_is_not_added(line: CommandLine) -> None:
    before = line.json("client", "list")
    for words, sentence in (
        ("--grant robot --scope all", "A client's grant is agent or integration.\n"),
        ("--grant agent", f"{NO_SCOPE}\n"),
        (
            "--grant agent --scope all --scope slot:read",
            "There is no scope 'slot:read'; the closest is 'slots:read'.\n",
        ),
        ("--grant agent --scope slot:read", "There is no scope 'slot:read'; the closest is 'slots:read'.\n"),
        (
            "--grant agent --scope all --per-minute 0",
            "The rate limit (calls a minute) must be between 1 and 2147483647.\n",
        ),
        ("--grant agent --scope all --practice harbour", "There is no practice 'harbour'; the closest is 'harbor'.\n"),
    ):
        done = line.run(*ADD, *words.split())
        assert (done.status, done.out, done.err) == (2, "", sentence)
    assert line.json("client", "list") == before


def test_clients_are_disabled_and_enabled(line: CommandLine) -> None:
    client = line.json(*ADD, "--grant", "agent", "--scope", "all")["clientId"]
    assert line.json("client", "disable", client)["disabled"] is True
    assert f"{client}  harbor" in (listed := line.run("client", "list", "--practice", "harbor").out)
    assert any(client in row and row.endswith("disabled") for row in listed.splitlines())
    assert line.json("client", "enable", client)["disabled"] is False
    assert line.run("client", "list", "--practice", "nowhere").status == 2
    for word in ("show", "disable", "rotate-secret"):
        done = line.run("client", word, "fd_nobody")
        assert (done.status, done.err) == (2, "There is no client 'fd_nobody'.\n")


def test_clients_are_trusted_to_ask_people_only_where_somebody_says_so(line: CommandLine) -> None:
    client = line.json(*ADD, "--grant", "agent", "--scope", "all")["clientId"]
    assert line.json("client", "show", client)["trustedToAsk"] is False
    assert line.json("client", "trust", client)["trustedToAsk"] is True
    assert "Trusted to ask people" in line.run("client", "show", client).out
    assert line.json("client", "distrust", client)["trustedToAsk"] is False
    added = line.json(*ADD, "--grant", "agent", "--scope", "all", "--trusted-to-ask")["clientId"]
    assert line.json("client", "show", added)["trustedToAsk"] is True
    for each, recorded in ((client, ["trust", "distrust"]), (added, ["trust"])):
        records = line.json("audit", "list", "--practice", "harbor", "--subject", each)
        assert [record["operation"] for record in reversed(records)] == [
            "console.add_client",
            *(f"console.{act}_client" for act in recorded),
        ]


def test_a_rotated_secret_leaves_the_old_one_for_a_day_or_ends_it_at_once(line: CommandLine) -> None:
    added = line.json(*ADD, "--grant", "agent", "--scope", "all")
    rotated = line.json("client", "rotate-secret", added["clientId"])
    assert list(rotated) == ["clientId", "clientSecret"]
    assert rotated["clientId"] == added["clientId"]
    assert rotated["clientSecret"] != added["clientSecret"]
    newest, old = line.json("client", "show", added["clientId"])["secrets"]
    assert newest["retiresAt"] is None
    assert old["retiresAt"] > newest["createdAt"]
    assert "works until" in line.run("client", "rotate-secret", added["clientId"]).out
    line.json("client", "rotate-secret", added["clientId"], "--at-once")
    [newest] = line.json("client", "show", added["clientId"])["secrets"]
    assert newest["retiresAt"] is None


def test_tokens_are_revoked_and_scopes_and_grant_changed(line: CommandLine) -> None:
    client = line.json(*ADD, "--grant", "agent", "--scope", "slots:read")["clientId"]
    assert line.json("client", "show", client)["tokensNotBefore"] is None
    ends = [line.json("client", "revoke-tokens", client)["tokensNotBefore"]]
    changed = line.json("client", "set-access", client, "--scope", "patients:read", "--scope", "slots:read")
    assert (changed["grant"], changed["scopes"]) == ("agent", ["slots:read", "patients:read"])
    ends.append(changed["tokensNotBefore"])
    changed = line.json("client", "set-access", client, "--grant", "integration")
    assert (changed["grant"], changed["scopes"]) == ("integration", ["slots:read", "patients:read"])
    ends.append(changed["tokensNotBefore"])
    assert None not in ends
    assert line.json("client", "set-access", client, "--grant", "integration")["tokensNotBefore"] == ends[-1]
    for words, sentence in (
        (("set-access", client), "frontdesk client set-access: give --scope, --grant or both.\n"),
        (("set-access", client, "--grant", "robot"), "A client's grant is agent or integration.\n"),
        (("revoke-tokens", "fd_nobody"), "There is no client 'fd_nobody'.\n"),
    ):
        done = line.run("client", *words)
        assert (done.status, done.out, done.err) == (2, "", sentence)
    records = line.json("audit", "list", "--practice", "harbor", "--subject", client)
    operations = [record["operation"] for record in records]
    assert (operations.count("console.revoke_client_tokens"), operations.count("console.change_client")) == (1, 3)


def test_keys_are_rotated_listed_and_reencrypted_and_never_shown(line: CommandLine) -> None:
    before = {key["keyId"] for key in line.json("keys", "list")}
    (made,) = line.json("keys", "rotate", "--purpose", "token-signing")
    assert (made["purpose"], made["retiredAt"]) == ("token-signing", None)
    assert made["keyId"] not in before
    listed = line.json("keys", "list")
    assert {key["keyId"] for key in listed} == before | {made["keyId"]}
    assert all(set(key) == {"keyId", "purpose", "createdAt", "retiredAt"} for key in listed)
    assert {key["purpose"] for key in line.json("keys", "rotate")} == set(PURPOSES)
    count = len(line.json("keys", "list"))
    new = "a newer secret that is long enough to be one"
    old = (line.data_dir / "secret.key").read_text().strip()
    assert line.json("keys", "reencrypt", FRONTDESK_SECRET_KEY=f"{new},{old}") == {"reencrypted": count}
    assert len(line.json("keys", "list", FRONTDESK_SECRET_KEY=new)) == count
    done = line.run("keys", "list")
    assert (done.status, done.err.count("\n")) == (1, 1)
    assert "encrypted with another secret key" in done.err
    line.json("keys", "reencrypt", FRONTDESK_SECRET_KEY=f"{old},{new}")
    assert line.run("keys", "rotate", "--purpose", "signing").status == 2


def test_the_account_that_changes_a_client_is_in_the_audit_trail(line: CommandLine) -> None:
    client = line.json(*ADD, "--grant", "agent", "--scope", "all")["clientId"]
    line.run("client", "set-limits", client, "--quota", "5")
    line.run("client", "rotate-secret", client)
    line.run("client", "disable", client)
    records = line.json("audit", "list", "--practice", "harbor", "--subject", client)
    assert [(record["actor"], record["operation"]) for record in reversed(records)] == [
        ("command-line", "console.add_client"),
        ("command-line", "console.change_client"),
        ("command-line", "console.rotate_client_secret"),
        ("command-line", "console.disable_client"),
    ]
