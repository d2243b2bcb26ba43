"""Who hears of a change, and when."""

import asyncio

import pytest

from frontdesk.desk import live_updates
from frontdesk.desk.live_updates import LiveCalendars, TooManyStreams
from tests.console.streams import WAIT_TIMEOUT


@pytest.mark.parametrize("pause", [0.05, 3600.0])
async def test_a_change_soon_after_another_waits_for_the_pause(pause: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_updates, "PAUSE_SECONDS", pause)
    live, loop = LiveCalendars(), asyncio.get_running_loop()
    with live.listening(1, "harbor", "x") as listener:
        live.on_change("calendar", "1")
        began = loop.time()
        assert await listener.next(WAIT_TIMEOUT) == "changed"  # the first one at once
        for _ in range(10):
            live.on_change("calendar", "1")
        following = asyncio.create_task(listener.next(WAIT_TIMEOUT))
        if pause < WAIT_TIMEOUT:
            assert await following == "changed"
            assert loop.time() - began >= pause
            assert await listener.next(0.01) == "quiet"  # all ten were told together
        else:
            await asyncio.sleep(0.05)
            assert not following.done()
            live.close()  # does not wait for the pause
            async with asyncio.timeout(WAIT_TIMEOUT):
                assert await following == "over"


def test_the_streams_of_a_process_are_bounded() -> None:
    live = LiveCalendars(limit=2)
    with (
        live.listening(1, "a", "x"),
        live.listening(1, "a", "y"),
        pytest.raises(TooManyStreams),
        live.listening(1, "a", "z"),
    ):
        pass
    assert live.streams == 0
