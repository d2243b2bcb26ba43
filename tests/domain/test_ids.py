"""Public ids: their form, and that no character is likelier than another."""

from collections import Counter

from frontdesk.domain.ids import APPOINTMENT_ID, HOLD_ID, PATIENT_ID, new_appointment_id, new_hold_id, new_patient_id


def test_ids_have_their_form() -> None:
    for _ in range(100):
        assert APPOINTMENT_ID.match(new_appointment_id())
        assert HOLD_ID.match(new_hold_id())
        assert PATIENT_ID.match(new_patient_id())


def test_all_characters_are_equally_likely() -> None:
    ids = {new_appointment_id() for _ in range(20_000)}
    assert len(ids) == 20_000
    counts = Counter("".join(each.removeprefix("apt_") for each in ids))
    assert len(counts) == 62
    usual = 20_000 * 22 / 62
    assert all(abs(count - usual) < usual / 10 for count in counts.values())  # more than eight standard deviations
