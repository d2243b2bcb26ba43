"""Every answer of the FHIR door is valid R4, checked by validators that nobody here wrote."""

import inspect
from collections.abc import Awaitable, Callable, Iterator

import pytest

from tests.features.holds import test_holds
from tests.fhir_server import test_door, test_reads, test_writes
from tests.fhir_server.conftest import RecordingTransport
from tests.fhir_server.validator import Validator
from tests.support.world import World

pytestmark = pytest.mark.heavy
VISITS = [
    visit
    for module in (test_door, test_holds, test_reads, test_writes)
    for name, visit in inspect.getmembers(module, inspect.iscoroutinefunction)
    if name.startswith("test_") and [*inspect.signature(visit).parameters] == ["server"]
]


@pytest.fixture(scope="module")
def validator() -> Iterator[Validator]:
    opened = Validator()
    yield opened
    opened.close()


def test_the_validators_notice_faults(validator: Validator) -> None:
    slot = {
        "resourceType": "Slot", "id": "1", "schedule": {"reference": "Schedule/1"}, "status": "free",
        "start": "2026-11-16T09:00:00-05:00", "end": "2026-11-16T09:15:00-05:00",
    }  # fmt: skip
    appointment = {
        "resourceType": "Appointment", "status": "booked",
        "participant": [{"actor": {"reference": "Patient/1"}, "status": "accepted"}],
    }  # fmt: skip
    assert validator.faults(slot) == []
    assert validator.faults({**slot, "status": "open"})
    assert validator.faults({**slot, "start": "tomorrow"})
    assert validator.faults({**slot, "provider": "1"})
    assert validator.faults(
        {"resourceType": "Bundle", "type": "searchset", "entry": [{"resource": {**slot, "id": ""}}]}
    )
    assert validator.faults(appointment), "only proposed appointments may lack a time"


@pytest.mark.parametrize("visit", VISITS, ids=lambda visit: visit.__name__.removeprefix("test_"))
async def test_every_answer_is_valid(
    server: World, validator: Validator, visit: Callable[[World], Awaitable[None]]
) -> None:
    await visit(server)
    assert isinstance(server.transport, RecordingTransport)
    answers = server.transport.answers
    assert answers
    invalid = {request: faults for request, answer in answers if (faults := validator.faults(answer))}
    assert not invalid
