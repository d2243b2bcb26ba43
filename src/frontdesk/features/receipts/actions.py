from frontdesk.audit.sentences import Action, AuditSentence

ISSUE = Action(
    "command.issue_receipt",
    "Issue a consent receipt",
    AuditSentence("%(actor)s issued a consent receipt", "%(actor)s issued a consent receipt about %(names)s"),
)
DOWNLOAD = Action(
    "patient_link.receipt",
    "Download a consent receipt by a patient's link",
    AuditSentence("%(actor)s downloaded a consent receipt", "%(actor)s downloaded a consent receipt of %(names)s"),
)
