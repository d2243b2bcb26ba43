"""What is sent again, when, and what never is: the retry column of the catalogue of errors."""

import time
from collections.abc import Iterator

import pytest
from frontdesk_client import (
    AnswerLost,
    Frontdesk,
    FrontdeskError,
    Internal,
    RateLimited,
    UpstreamUnavailable,
)
from frontdesk_client.problems import BY_CODE

from frontdesk.domain.errors import CATALOGUE, Problem
from tests.clients.fault_proxy import Fault, FaultProxy, answered, cut_before, drip, silence
from tests.clients.running_desk import NEXT_WEEK, Desk

PATH = "/api/practice"
AGAIN = {"unauthorized": 2, "internal": 2, "rate_limited": 3, "upstream_unavailable": 3}
"""How often a read is sent that gets this answer twice and would then succeed. All others: once."""


def problem(code: str, retry_after: int | None = None) -> Fault:
    chosen = Problem(code)
    headers = {"Content-Type": "application/problem+json"}
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)
    return answered(chosen.status, chosen.document("http://docs", "0" * 32), headers)


@pytest.fixture
def client(desk: Desk, proxy: FaultProxy) -> Iterator[Frontdesk]:
    """With its token in hand, so that the script begins with the call itself."""
    with desk.agent.client(proxy.url) as opened:
        opened.get_capabilities()
        proxy.reset()
        yield opened


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that the client makes, without the waiting."""
    made: list[float] = []
    monkeypatch.setattr("frontdesk_client._sync.session.sleep", made.append)
    return made


@pytest.mark.parametrize("code", CATALOGUE)
def test_a_read_is_sent_again_as_the_catalogue_allows(
    client: Frontdesk, proxy: FaultProxy, pauses: list[float], code: str
) -> None:
    between = [None] if code == "unauthorized" else []  # the fresh token
    proxy.reset(problem(code, retry_after=3), *between, problem(code, retry_after=3))
    raised: FrontdeskError | None = None
    try:
        client.get_practice()
    except FrontdeskError as error:
        raised = error
    assert len(proxy.sent(PATH)) == AGAIN.get(code, 1)
    if code in ("rate_limited", "upstream_unavailable"):
        assert raised is None
        assert len(pauses) == 2
        assert all(3 <= pause <= 4 for pause in pauses)
    else:
        assert type(raised) is BY_CODE[code]
        assert raised.code == code
        assert raised.status == CATALOGUE[code].status


@pytest.mark.parametrize("code", [code for code in CATALOGUE if code not in (*AGAIN, "confirmation_required")])
def test_a_confirming_write_that_was_refused_is_not_sent_again(
    client: Frontdesk, proxy: FaultProxy, patient_id: str, pauses: list[float], code: str
) -> None:
    slot = client.find_first_available(visit_type_id=23, procedure_id=106, from_=NEXT_WEEK).items[0]
    proposal = client.book_appointment(patient_id=patient_id, slot_id=slot.id)
    proxy.reset(problem(code))
    with pytest.raises(BY_CODE[code]):
        proposal.confirm()
    assert len(proxy.requests) == 1
    assert not pauses


def test_a_write_that_failed_inside_the_service_is_resent_once_with_its_token(
    client: Frontdesk, proxy: FaultProxy, patient_id: str, pauses: list[float]
) -> None:
    slot = client.find_first_available(visit_type_id=23, procedure_id=106, from_=NEXT_WEEK).items[0]
    proposal = client.book_appointment(patient_id=patient_id, slot_id=slot.id)
    executed = answered(500, Problem("internal").document("http://docs", "0" * 32), forwarded=True)
    proxy.reset(executed, executed)
    with pytest.raises(Internal):
        proposal.confirm()
    assert len({seen.body for seen in proxy.requests}) == 1
    assert len(proxy.requests) == 2
    booked = proposal.confirm()
    assert [each.id for each in client.list_appointments(patient_id=patient_id)] == [booked.appointment_id]


def _call_often(client: Frontdesk) -> None:
    for _ in range(5):
        client.get_practice()


def test_a_cap_whose_window_ends_after_the_deadline_is_reported_at_once(desk: Desk) -> None:
    with desk.add_client("agent", "--per-minute", "2").client(desk.url, deadline=20) as client:
        began = time.monotonic()
        with pytest.raises(RateLimited) as limited:
            _call_often(client)
    assert limited.value.retry_after is not None
    assert 0 < limited.value.retry_after <= 60
    assert limited.value.request_id is None
    assert time.monotonic() - began < 40, "the rest of the minute was not waited for"


def test_the_seconds_of_retry_after_are_really_waited(client: Frontdesk, proxy: FaultProxy) -> None:
    proxy.reset(problem("upstream_unavailable", retry_after=1))
    began = time.monotonic()
    assert client.get_practice().id == "demo"
    assert 1 <= time.monotonic() - began < 20


def test_the_deadline_ends_the_retries(desk: Desk, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]  # passes with the pauses alone
    monkeypatch.setattr("frontdesk_client._retries.monotonic", lambda: now[0])
    monkeypatch.setattr("frontdesk_client._sync.session.sleep", lambda pause: now.append(now.pop() + pause))
    with desk.agent.client(proxy.url, timeout=60.0, deadline=60.0) as client:
        client.get_capabilities()
        proxy.reset(*[cut_before] * 50)
        now[0], client._deadline = 0.0, 4.0
        with pytest.raises(AnswerLost) as lost:
            client.get_practice()
    assert now[0] < 4
    assert (lost.value.code, lost.value.status) == ("answer_lost", None)
    assert 2 <= len(proxy.requests) <= 15, "again, but ever more slowly"


@pytest.mark.parametrize("fault", [silence, drip])
def test_an_answer_that_does_not_end_is_given_up_at_the_deadline(desk: Desk, proxy: FaultProxy, fault: Fault) -> None:
    with desk.agent.client(proxy.url, timeout=60.0) as client:
        client.get_capabilities()
        proxy.reset(fault)
        client._deadline = 0.6
        began = time.monotonic()
        with pytest.raises(AnswerLost):
            client.get_practice()
    assert time.monotonic() - began < 20


def test_nobody_listening_is_reported_within_the_deadline(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]  # passes with the pauses alone
    monkeypatch.setattr("frontdesk_client._retries.monotonic", lambda: now[0])
    monkeypatch.setattr("frontdesk_client._sync.session.sleep", lambda pause: now.append(now.pop() + pause))
    with (
        desk.agent.client("http://127.0.0.1:9", deadline=20) as client,
        pytest.raises(AnswerLost, match="ConnectError"),
    ):
        client.get_practice()
    assert 12 < now[0] < 20


def test_a_pause_that_took_too_long_does_not_hide_the_reason(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("frontdesk_client._retries.monotonic", lambda: now[0])
    monkeypatch.setattr("frontdesk_client._sync.session.sleep", lambda pause: now.append(now.pop() + 30))
    with (
        desk.agent.client("http://127.0.0.1:9", deadline=20) as client,
        pytest.raises(AnswerLost, match="ConnectError"),
    ):
        client.get_practice()


@pytest.mark.parametrize(("status", "sent"), [(502, 2), (503, 2), (504, 2), (429, 2), (404, 1), (500, 1), (302, 1)])
def test_what_a_proxy_says_counts_as_no_answer(
    client: Frontdesk, proxy: FaultProxy, pauses: list[float], status: int, sent: int
) -> None:
    proxy.reset(answered(status, "<h1>Something in between</h1>"))
    if sent == 1:
        with pytest.raises(AnswerLost) as lost:
            client.get_practice()
        assert lost.value.status == status
    else:
        assert client.get_practice().id == "demo"
    assert len(proxy.requests) == sent == len(pauses) + 1


@pytest.mark.parametrize("body", ["", "<h1>Welcome to the guest network</h1>", "[]", "{}", '{"id": 1}'])
def test_a_success_that_cannot_be_read_is_no_success(client: Frontdesk, proxy: FaultProxy, body: str) -> None:
    proxy.reset(answered(200, body))
    with pytest.raises(AnswerLost):
        client.get_practice()
    assert len(proxy.requests) == 1


def test_a_code_that_is_new_to_the_client_is_still_an_error_of_its_base(client: Frontdesk, proxy: FaultProxy) -> None:
    proxy.reset(answered(409, {"code": "brand_new", "detail": "Something new.", "requestId": "f" * 32}))
    with pytest.raises(FrontdeskError) as error:
        client.get_practice()
    assert type(error.value) is FrontdeskError
    assert str(error.value) == f"brand_new (409): Something new. (request {'f' * 32})"


def test_a_missing_retry_after_does_not_mean_at_once(client: Frontdesk, proxy: FaultProxy, pauses: list[float]) -> None:
    proxy.reset(problem("rate_limited"))
    client.get_practice()
    assert len(pauses) == 1
    assert pauses[0] >= 1


def test_an_upstream_that_stays_away_is_reported_as_such(desk: Desk, proxy: FaultProxy) -> None:
    with desk.agent.client(proxy.url, deadline=20) as client:
        client.get_capabilities()
        proxy.reset(*[problem("upstream_unavailable", retry_after=30)] * 5)
        with pytest.raises(UpstreamUnavailable) as away:
            client.get_practice()
    assert away.value.retry_after == 30
    assert len(proxy.requests) == 1
