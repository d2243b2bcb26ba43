from frontdesk.audit.sentences import Action, AuditSentence

PREVIEW = Action(
    "console.preview_client_undo",
    "Look at what a client did, before it is undone",
    AuditSentence(
        "%(actor)s looked at what a client did, to undo it",
        "%(actor)s looked at what a client did to %(names)s, to undo it",
    ),
    is_view=True,
)
START = Action(
    "console.undo_client",
    "Undo what a client did",
    AuditSentence("%(actor)s undid what a client did", "%(actor)s undid what %(names)s did"),
)
LOOK = Action(
    "console.client_undo",
    "Look at what was undone of a client",
    AuditSentence(
        "%(actor)s looked at what was undone of a client",
        "%(actor)s looked at what was undone of a client, with %(names)s",
    ),
    is_view=True,
)
EXPORT = Action(
    "console.export_client_undo",
    "Download the list of patients to call after an undo",
    AuditSentence(
        "%(actor)s downloaded the list of patients to call after an undo",
        "%(actor)s downloaded the list of patients to call after an undo: %(names)s",
    ),
)

ACTIONS = (PREVIEW, START, LOOK, EXPORT)
