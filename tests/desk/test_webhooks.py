"""Webhooks that staff manage."""

from dataclasses import replace

from frontdesk.outbound.webhooks.endpoints import add_endpoint
from frontdesk.outbound.webhooks.sender import Sender
from tests.desk.acting import action_context
from tests.support.world import World
from tests.webhooks.receiver import receiving


async def test_a_test_message_reaches_an_endpoint_of_the_operator_and_tells_only_its_status(world: World) -> None:
    sender = Sender(allow_private=True)
    desk = replace(world.service.desk.webhooks, sender=sender)
    context = await action_context(world, "admin")
    async with receiving() as receiver:
        receiver.status["/bad"] = 418
        for path, expected in (("/hook", (200, None)), ("/bad", (418, "refused"))):
            added, _ = await add_endpoint(
                world.database, desk.cipher, context.practice_id, receiver.url(path), [], world.clock.now
            )
            sent = await desk.test(context, added.endpoint_id)
            assert (sent.status, sent.failure) == expected
        assert [message.document["type"] for message in receiver.attempts] == ["webhook.test"] * 2
        await sender.close()
