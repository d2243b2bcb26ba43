"""What the client shows of itself, and what it never shows: secrets, tokens, and what it knows about people."""

import logging
import pickle
from datetime import date

import pytest
from frontdesk_client import Frontdesk, FrontdeskError, Validation, __version__

from tests.clients.fault_proxy import FaultProxy
from tests.clients.running_desk import Desk

PERSON = {"first_name": "Xenobia", "last_name": "Quillfeather", "phone": "+1 555 7654321"}
BORN = date(1971, 3, 4)
MARKS = ("Xenobia", "Quillfeather", "7654321", "1971-03-04", "1971, 3, 4", "xq@example.com")


def test_logs_and_representations_hold_no_secrets_and_no_patient_data(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    shown = []
    with desk.agent.client(desk.url) as client:
        proposal = client.create_patient(**PERSON, dob=BORN, email="xq@example.com")
        assert proposal.read_back["firstName"] == "Xenobia"
        created = proposal.confirm()
        patient = client.get_patient(patient_id=created.patient_id)
        assert patient.last_name == "Quillfeather"
        shown += [client, proposal, created, patient, client.match_patient(**PERSON, dob=BORN)]
        with pytest.raises(Validation) as invalid:
            client.update_patient(patient_id=patient.id, first_name="Xenobia\0", last_name="Quillfeather" * 20)
        shown += [invalid.value, str(invalid.value)]
        held = client._token
        assert held is not None
        shown.append(held)
    text = caplog.text + "".join(repr(each) for each in shown)
    for mark in (*MARKS, desk.agent.client_secret, held.text, proposal.confirmation_token):
        assert mark not in text


def test_errors_survive_being_sent_to_another_process() -> None:
    error = FrontdeskError("Something.", code="brand_new", status=409, request_id="f" * 32, retry_after=2.0)
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert (copy.code, copy.retry_after) == ("brand_new", 2.0)


def test_an_address_without_a_scheme_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="http"):
        Frontdesk("127.0.0.1:8080", client_id="a", client_secret="b")


@pytest.mark.parametrize("ending", ["", "/", "/api", "/api/"])
def test_the_address_may_be_the_one_that_the_document_names(desk: Desk, ending: str) -> None:
    with desk.agent.client(desk.url + ending) as client:
        assert client.get_practice().id == "demo"


def test_the_client_says_what_it_is(desk: Desk, proxy: FaultProxy) -> None:
    with desk.agent.client(proxy.url) as client:
        client.get_capabilities()
    for seen in proxy.requests:
        assert seen.headers["user-agent"].startswith(f"frontdesk-client/{__version__} python/3.")
