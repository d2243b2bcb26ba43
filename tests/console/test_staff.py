"""The staff page: admins add staff, give them links, and take their access away again."""

import asyncio
import re

import httpx
import pytest

from tests.console.signing_in import TEST_STAFF, audited, signed_in, use_link, waiting_for
from tests.desk.acting import staff_member
from tests.support.world import World


def link_in(html: str) -> str:
    found = re.search(r"http://test/console/sign-in#([\w-]{43})", html)
    assert found is not None, html
    return found.group(1)


async def test_an_added_staff_member_signs_in_with_the_shown_link(world: World, admin: httpx.AsyncClient) -> None:
    answer = await admin.post("/console/staff", data={"name": "Rosa <b>Diaz</b>", "role": "staff", "email": ""})
    assert answer.status_code == 200
    assert "Rosa &lt;b&gt;Diaz&lt;/b&gt;" in answer.text
    browser = world.anonymous()
    assert (await use_link(browser, link_in(answer.text))).status_code == 303
    assert (await browser.get("/console/staff")).status_code == 403
    listed = await admin.get("/console/staff")
    assert "Rosa &lt;b&gt;Diaz&lt;/b&gt;" in listed.text
    assert "#" + link_in(answer.text) not in listed.text, "a link is shown once"
    assert ("console.add_staff", "executed", admin.headers[TEST_STAFF]) in await audited(world)
    assert ("console.new_link", "executed", admin.headers[TEST_STAFF]) in await audited(world)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "", "role": "staff"}, "name is one line"),
        ({"name": "x" * 101, "role": "staff"}, "name is one line"),
        ({"name": "Rosa", "role": "owner"}, "role is staff or admin"),
        ({"name": "Rosa", "role": "staff", "email": "rosa"}, "looks like name@example.com"),
        ({"name": "Rosa", "role": "staff", "email": "TAKEN@example.com"}, "Another staff member signs in"),
    ],
)
async def test_what_cannot_be_added_is_told_and_what_was_typed_stays(
    world: World, admin: httpx.AsyncClient, fields: dict[str, str], message: str
) -> None:
    await staff_member(world, email="taken@example.com")
    answer = await admin.post("/console/staff", data=fields)
    assert answer.status_code == 422
    assert message in answer.text
    assert f'value="{fields["name"]}"' in answer.text


async def test_a_staff_member_is_disabled_enabled_and_removed(world: World, admin: httpx.AsyncClient) -> None:
    member = await signed_in(world, name="Ben")
    path = f"/console/staff/{member.headers[TEST_STAFF]}"

    async def change(how: str) -> None:
        answer = await admin.post(f"{path}/change", data={"change": how})
        assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/console/staff")
        page = await admin.get(answer.headers["location"])
        assert 'role="status"' in page.text

    await change("admin")
    assert (await member.get("/console/staff")).status_code == 200
    await change("disable")
    assert (await member.get("/console/account")).status_code == 303
    assert (await admin.post(f"{path}/link")).status_code == 409
    await change("enable")
    again = await admin.post(f"{path}/link")
    assert (await use_link(member, link_in(again.text))).status_code == 303
    await change("remove")
    assert (await member.get("/console/account")).status_code == 303
    assert (await admin.post(f"{path}/link")).status_code == 404
    actors = {actor for operation, _, actor in await audited(world) if operation.endswith("_staff")}
    assert admin.headers[TEST_STAFF] in actors


async def test_nobody_takes_their_own_access_away(admin: httpx.AsyncClient) -> None:
    path = f"/console/staff/{admin.headers[TEST_STAFF]}/change"
    for change in ("staff", "disable", "remove"):
        assert (await admin.post(path, data={"change": change})).status_code == 409
    assert (await admin.get("/console/staff")).status_code == 200


@pytest.mark.parametrize("change", ["staff", "disable", "remove"])
async def test_two_admins_who_take_each_others_access_away_leave_one(world: World, change: str) -> None:
    both = [await signed_in(world, "admin", practice="other", name=name) for name in ("Ada", "Bob")]
    ids = [each.headers[TEST_STAFF] for each in both]
    async with world.database.transaction() as connection:
        await connection.fetch("SELECT FROM staff WHERE staff_id = ANY ($1::text[]) FOR UPDATE", ids)
        paths = [f"/console/staff/{staff_id}/change" for staff_id in reversed(ids)]
        changes = [
            asyncio.create_task(each.post(path, data={"change": change}))
            for each, path in zip(both, paths, strict=True)
        ]
        await waiting_for(connection, 2)
    answers = sorted([answer.status_code for answer in await asyncio.gather(*changes)])
    assert answers == [303, 403 if change == "staff" else 401]
    left = "SELECT count(*) FROM staff WHERE staff_id = ANY ($1::text[]) AND role = 'admin' AND NOT disabled"
    assert await world.database.fetchval(left, ids) == 1


async def test_an_unknown_change_is_refused(world: World, admin: httpx.AsyncClient) -> None:
    member = await staff_member(world)
    answer = await admin.post(f"/console/staff/{member.staff_id}/change", data={"change": "owner"})
    assert answer.status_code == 404
