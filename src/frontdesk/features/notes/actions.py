from frontdesk.audit.sentences import Action, AuditSentence

ADD = Action(
    "console.add_note",
    "Add a note",
    AuditSentence("%(actor)s added a note", "%(actor)s added a note about %(names)s"),
)
REMOVE = Action(
    "console.remove_note",
    "Remove a note",
    AuditSentence("%(actor)s removed a note", "%(actor)s removed a note about %(names)s"),
)
