"""Forms: in parts, read as browsers send them and refused where they were made to keep the parser busy; and ids."""

import pytest

from frontdesk.console.forms import read_id
from tests.console.signing_in import csrf_in, link_token
from tests.desk.acting import staff_member
from tests.support.world import World

SIGN_IN = "/console/sign-in"
PART = '--{}\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
FILE = (
    '--{}\r\nContent-Disposition: form-data; name="file"; filename="name=&quot;link&quot;.yaml"\r\n'
    "Content-Type: application/yaml\r\n\r\n--- # not a boundary\r\n--short\r\n\r\n"
)


@pytest.mark.parametrize("boundary", ["----WebKitFormBoundaryx7MA4YWxk", "a.+(b)?", "x" * 70])
@pytest.mark.parametrize("quote", ["", '"'])
async def test_a_form_in_parts_is_read_like_any_other(world: World, boundary: str, quote: str) -> None:
    member = await staff_member(world)
    browser, token = world.anonymous(), await link_token(world, member.staff_id)
    csrf = csrf_in((await browser.get(SIGN_IN)).text)
    parts = PART.format(boundary, "csrf", csrf) + FILE.format(boundary) + PART.format(boundary, "link", token)
    answer = await browser.post(
        SIGN_IN,
        content=f"{parts}--{boundary}--\r\n",
        headers={"Content-Type": f"multipart/form-data; boundary={quote}{boundary}{quote}"},
    )
    assert answer.status_code == 303, answer.text


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data; boundary=a" + ";a=b" * 100, "--a\r\n\r\n" * 500 + "--a--\r\n"),
        ("multipart/form-data; boundary=a", PART.format("a", "link", "x") * 21 + "--a--\r\n"),
        ("multipart/form-data; boundary=a", PART.format("a", "link", "x")),  # cut off
        ("multipart/form-data; boundary=a", "--a\n\nlink\n--a--\n"),
        ("multipart/form-data; boundary=a", "a--"),
        ("multipart/form-data; boundary=" + "a" * 71, "--" + "a" * 71 + "--\r\n"),
        ("multipart/form-data", "--a--\r\n"),
    ],
)
async def test_a_form_that_no_browser_sends_is_refused(world: World, content_type: str, body: str) -> None:
    answer = await world.anonymous().post(SIGN_IN, content=body, headers={"Content-Type": content_type})
    assert answer.status_code == 400, answer.text
    assert "cannot be read" in answer.text


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7), ("2147483647", 2**31 - 1), ("2147483648", None), ("0" * 11 + "9" * 5000, None), ("", None), ("٣", None)],
)
def test_an_id_is_a_number_that_the_database_can_hold(text: str, number: int | None) -> None:
    assert read_id(text) == number
