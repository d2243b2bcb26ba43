from frontdesk.audit.sentences import Action, AuditSentence

LOOK = Action(
    "console.absence",
    "Look at a provider's absence",
    AuditSentence(
        "%(actor)s looked at a provider's absence",
        "%(actor)s looked at a provider's absence with appointments of %(names)s",
    ),
    is_view=True,
)
CALL_LIST = Action(
    "console.call_list",
    "Look at a call list",
    AuditSentence("%(actor)s looked at a call list", "%(actor)s looked at a call list with %(names)s"),
    is_view=True,
)
START = Action(
    "console.start_absence",
    "Record an absence",
    AuditSentence("%(actor)s recorded an absence", "%(actor)s recorded an absence of %(names)s"),
)
REASSIGN = Action(
    "console.reassign_appointments",
    "Reassign the appointments of a provider who is away",
    AuditSentence(
        "%(actor)s reassigned the appointments of a provider who is away",
        "%(actor)s reassigned the appointments of %(names)s",
    ),
)
UNDO = Action(
    "console.undo_reassignment",
    "Undo the reassignment of appointments",
    AuditSentence(
        "%(actor)s undid the reassignment of appointments",
        "%(actor)s undid the reassignment of the appointments of %(names)s",
    ),
)
RECORD_CALL = Action(
    "console.record_call",
    "Record a call",
    AuditSentence("%(actor)s recorded a call", "%(actor)s recorded a call to %(names)s"),
)
WITHDRAW_CALL = Action(
    "console.withdraw_call",
    "Undo the record of a call",
    AuditSentence("%(actor)s undid the record of a call", "%(actor)s undid the record of a call to %(names)s"),
)

ACTIONS = (LOOK, CALL_LIST, START, REASSIGN, UNDO, RECORD_CALL, WITHDRAW_CALL)
