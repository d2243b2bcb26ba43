"""Receipts on the page that a patient opens by their own link: what agents changed, and the signed statements of it."""

from collections.abc import Mapping

from frontdesk.audit.agreements import agreed_write, agreed_writes
from frontdesk.audit.reading import AFTER_ALL
from frontdesk.console.domain_texts import actor_name
from frontdesk.console.panels import PanelFile, PatientsPanel, PatientsVisit
from frontdesk.desk.actors import actors_of
from frontdesk.features.receipts.actions import DOWNLOAD
from frontdesk.features.receipts.receipt_ids import receipt_id, record_of
from frontdesk.features.receipts.receipts import REPORTED, Receipts
from frontdesk.texts import N_, Text

_SHOWN = 20
_CHANGES = {
    "book_appointment": N_("The appointment was booked."),
    "reschedule_appointment": N_("The appointment was moved."),
    "confirm_attendance": N_("It was confirmed that you will come."),
    "cancel_appointment": N_("The appointment was cancelled."),
}
_AGREED = {
    "client": N_("%(name)s says that you agreed."),
    "host": N_("The program in which %(name)s works says that you agreed."),
    "patient": N_("Agreed with the patient's link and date of birth."),
    "staff": N_("Agreed by staff of the practice."),
}


async def _values(visit: PatientsVisit) -> Mapping[str, object] | None:
    receipts = visit.services[Receipts]
    writes = await agreed_writes(
        receipts.database,
        visit.practice_id,
        visit.patient_id,
        before=AFTER_ALL,
        limit=_SHOWN,
        appointment_id=visit.appointment_id,
    )
    if not writes:
        return None
    actors = await actors_of(receipts.database, visit.practice_id, {each.actor for each in writes})
    shown = [
        {
            "file": receipt_id(each.record_id),
            "at": each.at,
            "change": _CHANGES[each.operation],
            "agreed": Text(_AGREED[REPORTED[each.consent].by], name=actor_name(actors[each.actor])),
        }
        for each in writes
        if each.operation in _CHANGES
    ]
    return {"receipts": shown, "keys": f"{receipts.issuer}/.well-known/jwks.json"}


async def _file(visit: PatientsVisit, name: str) -> PanelFile | None:
    receipts, record_id = visit.services[Receipts], record_of(name)
    write = None if record_id is None else await agreed_write(receipts.database, visit.practice_id, record_id)
    if write is None or write.appointment_id != visit.appointment_id:
        return None
    text = await receipts.issue(visit.practice_id, write.record_id)
    await visit.record(DOWNLOAD.name, write.subject_ids)
    return PanelFile(f"receipt-{write.record_id}.jws", "application/jose", text.encode())


PANEL = PatientsPanel("receipts/panel.html", _values, _file)
