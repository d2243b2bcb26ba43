from tests.support.audited_features import Audited

AUDITED = Audited(
    quiet_actions={"Notes.authors", "Notes.for_agents", "Notes.on_patients"},
    forms={
        "/appointments/{appointment_id}/notes": {"kind": "reason", "text": "Knee", "key": "third key"},
        "/patients/{patient_id}/notes": {"kind": "reason", "text": "Knee", "key": "fourth key"},
        "/patients/{patient_id}/notes/remove": {"note": "note"},
    },
)
