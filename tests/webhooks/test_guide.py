"""The guide's receiver works on real messages as it stands."""

import re
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import WebhookVerificationError

from frontdesk.outbound.webhooks.deliveries import replay
from frontdesk.outbound.webhooks.events import EVENT_TYPES
from tests.webhooks.desk import Desk
from tests.webhooks.receiver import Receiver

GUIDE = (Path(__file__).parents[2] / "docs" / "users" / "webhooks.md").read_text()


async def test_the_receiver_of_the_guide_takes_an_event_in_once_and_no_forgery(desk: Desk, receiver: Receiver) -> None:
    [code] = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
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


def test_the_guide_names_every_event() -> None:
    assert [name for name in EVENT_TYPES if f"`{name}`" not in GUIDE] == []
