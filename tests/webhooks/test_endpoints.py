"""Endpoints and their secrets: rotation with two live ones, sealed at rest, one practice's alone."""

from datetime import timedelta

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from frontdesk.access.keys.encryption import KeyCipher
from frontdesk.outbound.webhooks.endpoints import (
    WebhookError,
    add_endpoint,
    list_endpoints,
    reencrypt_secrets,
    remove_endpoint,
    rotate_secret,
    show_endpoint,
)
from tests.webhooks.desk import SECRET_KEY, Desk
from tests.webhooks.receiver import Message, Receiver

DAY = timedelta(days=1)


def verifies(message: Message, secret: str) -> bool:
    try:
        Webhook(secret).verify(message.body, message.headers)
    except WebhookVerificationError:
        return False
    return True


async def receive_test(desk: Desk, receiver: Receiver) -> Message:
    await desk.happen("apt_1")
    await desk.deliver()
    return receiver.received[-1]


async def test_after_a_rotation_both_secrets_verify_until_the_old_one_retires(desk: Desk, receiver: Receiver) -> None:
    endpoint, old = await desk.endpoint(receiver.url())
    _, new = await rotate_secret(desk.database, desk.cipher, endpoint, desk.clock.now, retire_old_after=DAY)
    message = await receive_test(desk, receiver)
    assert len(message.headers["webhook-signature"].split(" ")) == 2
    assert (verifies(message, old), verifies(message, new)) == (True, True)
    desk.clock.advance(days=1)
    message = await receive_test(desk, receiver)
    assert (verifies(message, old), verifies(message, new)) == (False, True)


async def test_a_second_rotation_drops_the_oldest_secret_and_at_once_means_now(desk: Desk, receiver: Receiver) -> None:
    endpoint, first = await desk.endpoint(receiver.url())
    _, second = await rotate_secret(desk.database, desk.cipher, endpoint, desk.clock.now, retire_old_after=DAY)
    _, third = await rotate_secret(desk.database, desk.cipher, endpoint, desk.clock.now, retire_old_after=DAY)
    message = await receive_test(desk, receiver)
    assert [verifies(message, secret) for secret in (first, second, third)] == [False, True, True]
    _, fourth = await rotate_secret(desk.database, desk.cipher, endpoint, desk.clock.now, retire_old_after=timedelta(0))
    message = await receive_test(desk, receiver)
    assert [verifies(message, secret) for secret in (second, third, fourth)] == [False, False, True]


async def test_secrets_have_the_standard_form_and_are_not_readable_in_the_database(desk: Desk) -> None:
    _, secret = await desk.endpoint("https://hooks.example.com/")
    assert secret.startswith("whsec_")
    key = Webhook(secret)._whsecret
    assert len(key) == 32
    [row] = await desk.rows("SELECT sealed FROM webhook_secret")
    assert key not in row["sealed"]
    assert secret.encode() not in row["sealed"]


async def test_an_unknown_event_is_refused_with_the_closest(desk: Desk) -> None:
    with pytest.raises(WebhookError, match=r"appointment\.booked"):
        await desk.endpoint("https://hooks.example.com/", "appointment.boked")
    assert await list_endpoints(desk.database) == []


async def test_endpoints_of_other_practices_are_not_listed_and_their_ids_lead_nowhere(desk: Desk) -> None:
    other = await desk.another_practice()
    mine, _ = await desk.endpoint("https://hooks.example.com/mine")
    theirs, _ = await other.endpoint("https://hooks.example.com/theirs")
    assert [e.endpoint_id for e in await list_endpoints(desk.database, desk.practice_id)] == [mine]
    assert {e.endpoint_id for e in await list_endpoints(desk.database)} == {mine, theirs}
    forged = theirs.replace(f"whk_{other.practice_id}_", f"whk_{desk.practice_id}_")
    for wrong in (forged, "whk_0_0123456789abcdef", "whk_", "", "whk_99999999999999999999_0123456789abcdef"):
        with pytest.raises(WebhookError):
            await show_endpoint(desk.database, wrong)


async def test_a_removed_endpoint_leaves_nothing_behind(desk: Desk, receiver: Receiver) -> None:
    endpoint, _ = await desk.endpoint(receiver.url())
    await receive_test(desk, receiver)
    await desk.happen("apt_2")
    await remove_endpoint(desk.database, endpoint)
    assert await desk.deliver() == 0
    for table in ("webhook_endpoint", "webhook_secret", "webhook_delivery", "webhook_attempt"):
        assert await desk.rows(f"SELECT * FROM {table}") == []
    with pytest.raises(WebhookError):
        await remove_endpoint(desk.database, endpoint)
    again, _ = await add_endpoint(
        desk.database, desk.cipher, desk.practice_id, receiver.url("/again"), (), desk.clock.now
    )
    event = await desk.happen("apt_3")
    await desk.deliver()
    assert receiver.ids("/again") == [event], "not what happened in between"
    assert again.pending == 0


async def test_secrets_are_sealed_anew_when_the_operator_s_key_is_replaced(desk: Desk, receiver: Receiver) -> None:
    new_key = "another secret key of the tests, long enough"
    endpoint, secret = await desk.endpoint(receiver.url())
    await rotate_secret(desk.database, desk.cipher, endpoint, desk.clock.now, retire_old_after=DAY)
    desk.cipher = KeyCipher([new_key])
    await desk.happen("apt_0")
    await desk.deliver()
    assert receiver.attempts == [], "what cannot be signed is not sent"
    assert await reencrypt_secrets(desk.database, KeyCipher([new_key, SECRET_KEY])) == 2
    desk.clock.advance(minutes=1)
    assert verifies(await receive_test(desk, receiver), secret)
