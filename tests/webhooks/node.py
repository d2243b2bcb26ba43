"""A delivering node in a process of its own, for tests that kill it: node.py DSN LEASE_SECONDS."""

import asyncio
import sys
from datetime import timedelta

from frontdesk.access.keys.encryption import KeyCipher
from frontdesk.outbound.webhooks.deliverer import Deliverer
from frontdesk.outbound.webhooks.sender import Sender
from frontdesk.store.database import Database
from tests.support.running import running
from tests.webhooks.desk import SECRET_KEY


async def main(dsn: str, lease: float) -> None:
    database = Database(dsn, pool_size=4)
    await database.open()
    sender = Sender(allow_private=True, timeout_seconds=lease / 2)
    node = Deliverer(database, KeyCipher([SECRET_KEY]), sender, lambda _: None, lease=timedelta(seconds=lease))
    async with running(node.step):
        await asyncio.Event().wait()


asyncio.run(main(sys.argv[1], float(sys.argv[2])))
