"""Reading the pages for admins as a person would."""

import html
import re

import httpx

from tests.support.world import World

EVIL = '"><img src=x onerror=alert(1)><script>alert(1)</script>'


def text_of(page: httpx.Response) -> str:
    """What a person reads, on one line."""
    body = page.text.replace("<wbr>", "")
    body = re.sub(r"<(script|style|template)\b.*?</\1>", " ", body, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def check_harmless(page: httpx.Response) -> None:
    """Nothing that was typed became markup."""
    assert "<img src=x" not in page.text
    assert "<script>alert" not in page.text
    assert "alert(1)" in html.unescape(page.text), "what was typed is shown"


def value_of(page: httpx.Response, name: str) -> str:
    """What a field of a form holds."""
    found = re.search(rf'<input[^>]*name="{name}"[^>]*value="([^"]*)"', page.text)
    assert found is not None, name
    return html.unescape(found.group(1))


def errors_in(page: httpx.Response) -> dict[str, str]:
    """The errors beside the fields, each of which the summary leads to."""
    found = dict(re.findall(r'<p class="error" id="(\w+)-error">.*?<span>(.*?)</span>', page.text, re.DOTALL))
    assert set(re.findall(r'<li><a href="#(\w+)">', page.text)) == set(found)
    return {name: html.unescape(message) for name, message in found.items()}


async def practice_id(world: World, slug: str = "harbor") -> int:
    found: int = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = $1", slug)
    return found


async def token_status(world: World, client_id: str, secret: str) -> int:
    """How a token call with these credentials ends."""
    answer = await world.anonymous().post(
        "/oauth/token",
        data={"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret},
    )
    return answer.status_code
