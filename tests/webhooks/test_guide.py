"""The guide's receiver works on real messages as it stands."""

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import WebhookVerificationError

from frontdesk.feature import features
from frontdesk.outbound.webhooks.deliveries import replay
from frontdesk.outbound.webhooks.events import event_types
from tests.support.ports import free_port
from tests.webhooks.desk import Desk
from tests.webhooks.receiver import Receiver

GUIDE = (Path(__file__).parents[2] / "docs" / "users" / "webhooks.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


async def test_the_receiver_of_the_guide_takes_an_event_in_once_and_no_forgery(desk: Desk, receiver: Receiver) -> None:
    code, _ = PROGRAMS
    scope: dict[str, Any] = {}
    exec(code, scope)
    endpoint, secret = await desk.endpoint(receiver.url())
    event = await desk.happen("apt_1")
    await desk.deliver()
    await replay(desk.database, endpoint, int(event.removeprefix("evt_")), desk.clock.now)
    await desk.deliver()
    first, again = receiver.received
    seen: set[str] = set()
    assert scope["receive"](first.headers, first.body, secret, seen)["data"]["appointmentId"] == "apt_1"
    assert scope["receive"](again.headers, again.body, secret, seen) is None
    with pytest.raises(WebhookVerificationError):
        scope["receive"](first.headers, first.body + b" ", secret, seen)


async def test_the_programs_of_the_guide_together_print_an_event(desk: Desk) -> None:
    port = free_port()
    _, secret = await desk.endpoint(f"http://127.0.0.1:{port}/")
    program = "\n".join(PROGRAMS).replace("9000", str(port))
    receiver = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, env={**os.environ, "SECRET": secret}, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(30):
            while not await _listens(port):
                await asyncio.sleep(0.05)
            await desk.happen("apt_1")
            await desk.deliver()
            assert receiver.stdout is not None
            assert b"'appointmentId': 'apt_1'" in await receiver.stdout.readline()
    finally:
        receiver.kill()
        await receiver.wait()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionError:
        return False
    writer.close()
    return True


def test_the_guide_names_every_event_of_the_core() -> None:
    of_features = {event for feature in features() for event in feature.events}
    assert [name for name in set(event_types()) - of_features if f"`{name}`" not in GUIDE] == []
