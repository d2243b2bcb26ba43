"""`frontdesk staff`: who may sign in to the console, and the link that `serve --demo` prints."""

import re

import httpx
import pytest

from tests.cli.command_line import CommandLine

ADD = ("staff", "add", "--practice", "harbor", "--name", "Ana Costa")
LINK = re.compile(r"http://127\.0\.0\.1:8080/console/sign-in#[A-Za-z0-9_-]{43}\Z")


def use_link(url: str, link: str) -> httpx.Response:
    """What a browser does: the page's script moves the token into the form, a press of the button sends it."""
    address, _, token = link.partition("#")
    with httpx.Client(base_url=url, timeout=30) as browser:
        page = browser.get(address)
        form = re.search(r'name="csrf" value="([0-9a-f]{64})"', page.text)
        assert form is not None
        browser.post("/console/sign-in", data={"csrf": form.group(1), "link": token})
        return browser.get("/console/account")


@pytest.mark.usefixtures("harbor")
def test_an_added_staff_member_gets_a_link_that_is_shown_this_once(line: CommandLine) -> None:
    added = line.json(*ADD, "--role", "admin", "--email", "Ana@Example.com")
    assert list(added) == ["staffId", "link", "expiresInSeconds"]
    assert LINK.match(added["link"])
    assert added["expiresInSeconds"] == 900
    shown = line.json("staff", "show", added["staffId"])
    assert (shown["name"], shown["role"], shown["email"]) == ("Ana Costa", "admin", "ana@example.com")
    assert (shown["disabled"], shown["identityLinked"], shown["lastSignInAt"]) == (False, False, None)
    everything = line.run("staff", "list").out + line.run("staff", "show", added["staffId"]).out
    assert added["staffId"] in everything
    assert added["link"].partition("#")[2] not in everything
    another = line.run("staff", "link", added["staffId"]).out
    assert "works once, within 15 minutes" in another
    assert added["link"] not in another


@pytest.mark.usefixtures("harbor")
def test_staff_are_disabled_enabled_given_roles_and_removed(line: CommandLine) -> None:
    member = line.json(*ADD, "--role", "staff")["staffId"]
    assert line.json("staff", "disable", member)["disabled"] is True
    assert line.run("staff", "link", member).status == 2
    assert line.json("staff", "enable", member)["disabled"] is False
    assert line.json("staff", "set-role", member, "--role", "admin")["role"] == "admin"
    assert line.json("staff", "remove", member) == {"staffId": member, "removed": True}
    done = line.run("staff", "show", member)
    assert (done.status, done.err) == (2, f"There is no staff member {member!r}.\n")
    records = line.json("audit", "list", "--subject", member)
    request_ids = {each["operation"]: each["requestId"] for each in records}
    assert request_ids["console.add_staff"] == request_ids["console.new_link"], "one command, one request id"
    assert len(set(request_ids.values())) == len(records) - 1
    assert sorted(each["operation"] for each in records) == sorted(
        f"console.{each}"
        for each in (
            "add_staff", "new_link", "disable_staff", "enable_staff", "set_staff_role", "remove_staff",
        )
    )  # fmt: skip
    assert line.json("audit", "verify")["whole"] is True


@pytest.mark.usefixtures("harbor")
def test_a_staff_member_who_cannot_be_added_is_bad_input(line: CommandLine) -> None:
    line.json(*ADD, "--role", "staff", "--email", "taken@example.com")
    before = line.json("staff", "list", "--practice", "harbor")
    for words, sentence in (
        ("--role owner", "A staff member's role is staff or admin.\n"),
        ("--role staff --email rosa", "An e-mail address looks like name@example.com.\n"),
        ("--role staff --email taken@EXAMPLE.com", "Another staff member signs in with this e-mail address.\n"),
        ("--role staff --practice harbour", "There is no practice 'harbour'; the closest is 'harbor'.\n"),
        ("--role staff --name =", None),
    ):
        done = line.run(*ADD, *words.replace("=", "").split(" "))
        assert (done.status, done.out) == (2, "")
        assert sentence is None or done.err == sentence
    assert line.json("staff", "list", "--practice", "harbor") == before
    assert line.run("staff", "list", "--practice", "nowhere").status == 2


@pytest.mark.heavy
def test_the_demo_prints_a_link_that_signs_its_admin_in(line: CommandLine) -> None:
    links = []
    for _ in range(2):
        with line.serving("--demo") as served:
            links.append(served.document["signInLink"])
            assert served.document["console"] == f"{served.url}/console"
            account = use_link(served.url, links[-1])
            assert account.status_code == 200
            assert "Demo admin" in account.text
            assert use_link(served.url, links[-1]).status_code == 303, "once"
    assert links[0] != links[1], "a fresh one at each start"
    members = line.json("staff", "list", "--practice", "demo")
    assert [member["name"] for member in members] == ["Demo admin"], "and the same member"
