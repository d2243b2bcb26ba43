"""One running service for all tests of the client, and what they need to call it."""

import itertools
from collections.abc import Iterator
from datetime import date

import pytest
from frontdesk_client import Frontdesk

from tests.clients.fault_proxy import FaultProxy, fault_proxy
from tests.clients.running_desk import Desk, running_desk

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with running_desk(tmp_path_factory.mktemp("desk")) as running:
        yield running


@pytest.fixture
def proxy(desk: Desk) -> Iterator[FaultProxy]:
    with fault_proxy(desk.url) as between:
        yield between


@pytest.fixture(params=["agent", "integration"])
def grant(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture(scope="session")
def direct(desk: Desk) -> Iterator[Frontdesk]:
    """A client that nothing stands in the way of."""
    with desk.agent.client(desk.url) as client:
        yield client


@pytest.fixture
def patient_id(direct: Frontdesk) -> str:
    """A patient with an empty calendar."""
    phone = f"+1 555 {next(_numbers):07}"
    proposal = direct.create_patient(first_name="Test", last_name="Person", phone=phone, dob=date(1990, 1, 1))
    return proposal.confirm().patient_id
