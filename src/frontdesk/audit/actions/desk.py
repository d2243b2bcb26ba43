"""Of the calendar, patients, appointments and the trail itself."""

from frontdesk.audit.sentences import Action, AuditSentence

ACTIONS = (
    Action(
        "console.calendar",
        "Look at the calendar",
        AuditSentence(
            "%(actor)s looked at the calendar", "%(actor)s looked at the calendar with appointments of %(names)s"
        ),
        is_view=True,
    ),
    Action(
        "console.day_sheet",
        "Look at the day sheet",
        AuditSentence(
            "%(actor)s looked at the day sheet", "%(actor)s looked at the day sheet with appointments of %(names)s"
        ),
        is_view=True,
    ),
    Action(
        "console.arrivals",
        "Look at the arrivals board",
        AuditSentence(
            "%(actor)s looked at the arrivals board", "%(actor)s looked at the arrivals board with %(names)s"
        ),
        is_view=True,
    ),
    Action(
        "console.patient",
        "Look at a patient's record",
        AuditSentence("%(actor)s looked at a patient's record", "%(actor)s looked at the record of %(names)s"),
        is_view=True,
    ),
    Action(
        "console.appointment",
        "Look at an appointment",
        AuditSentence("%(actor)s looked at an appointment", "%(actor)s looked at an appointment of %(names)s"),
        is_view=True,
    ),
    Action(
        "console.search_patients",
        "Search patients",
        AuditSentence("%(actor)s searched the patients", "%(actor)s searched the patients and found %(names)s"),
        is_view=True,
    ),
    Action(
        "console.compare_patients",
        "Compare patients with those on file",
        AuditSentence(
            "%(actor)s compared patients with those on file",
            "%(actor)s compared patients with those on file and found %(names)s",
        ),
    ),
    Action(
        "console.blocked_appointments",
        "Look at appointments in blocked time",
        AuditSentence(
            "%(actor)s looked at appointments in blocked time",
            "%(actor)s looked at appointments of %(names)s in blocked time",
        ),
        is_view=True,
    ),
    Action(
        "console.block_time",
        "Block time",
        AuditSentence("%(actor)s blocked time", "%(actor)s blocked time of %(names)s"),
    ),
    Action(
        "console.unblock_time",
        "Open blocked time",
        AuditSentence("%(actor)s opened blocked time", "%(actor)s opened blocked time of %(names)s"),
    ),
    Action(
        "console.audit",
        "Look at the audit trail",
        AuditSentence("%(actor)s looked at the audit trail", "%(actor)s looked at the audit trail with %(names)s"),
        is_view=True,
    ),
    Action("console.export_audit", "Export the audit trail", AuditSentence("%(actor)s exported the audit trail")),
    Action("console.verify_audit", "Verify the audit trail", AuditSentence("%(actor)s verified the audit trail")),
    Action(
        "console.check_system", "Check the scheduling system", AuditSentence("%(actor)s checked the scheduling system")
    ),
)
