"""How long something takes, for comparisons within one run."""

import time
from collections.abc import Awaitable


async def seconds(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began
