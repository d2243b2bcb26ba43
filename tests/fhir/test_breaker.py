"""A server that failed in a row is left alone, and tried by one."""

import pytest

from frontdesk.systems.fhir.transport import breaker
from frontdesk.systems.port import SystemUnavailable
from tests.fhir.practice import UsageBucket


def test_the_breaker_lets_one_try_at_a_time() -> None:
    now = UsageBucket()
    tested = breaker.Breaker(now)
    for _ in range(breaker.FAILURES):
        tested.admit()
        tested.failed()
    with pytest.raises(SystemUnavailable) as caught:
        tested.admit()
    assert caught.value.retry_after == 2
    now.advance(2.0)
    tested.admit()
    with pytest.raises(SystemUnavailable):
        tested.admit()  # somebody else tries already
    tested.failed()
    now.advance(3.9)
    with pytest.raises(SystemUnavailable):
        tested.admit()  # and waits twice as long
    now.advance(0.1)
    tested.admit()
    tested.succeeded()
    tested.admit()
    tested.admit()


def test_one_that_tried_and_was_never_heard_of_again_does_not_keep_it_open() -> None:
    now = UsageBucket()
    tested = breaker.Breaker(now)
    for _ in range(breaker.FAILURES):
        tested.failed()
    now.advance(2.0)
    tested.admit()
    now.advance(4.0)
    tested.admit()


def test_a_wish_to_be_left_alone_has_its_limits() -> None:
    now = UsageBucket()
    tested = breaker.Breaker(now)
    tested.hold(86_400)
    with pytest.raises(SystemUnavailable) as caught:
        tested.admit()
    assert caught.value.retry_after == breaker.MAX_HOLD_SECONDS
    now.advance(breaker.MAX_HOLD_SECONDS)
    tested.admit()
