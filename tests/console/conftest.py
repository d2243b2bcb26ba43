"""People who are signed in to the console of a world."""

from collections.abc import Awaitable, Callable

import httpx
import pytest

from tests.console.signing_in import signed_in
from tests.support.world import World

SignedIn = Callable[..., Awaitable[httpx.AsyncClient]]


@pytest.fixture
async def admin(world: World) -> httpx.AsyncClient:
    return await signed_in(world, role="admin")


@pytest.fixture
async def staff(world: World) -> httpx.AsyncClient:
    return await signed_in(world, role="staff")
