from frontdesk.audit.sentences import Action, AuditSentence

MAKE = Action(
    "console.new_patient_link",
    "Create a patient's link",
    AuditSentence("%(actor)s created a patient's link", "%(actor)s created a patient's link for %(names)s"),
)
END = Action(
    "console.end_patient_link",
    "End a patient's link",
    AuditSentence("%(actor)s ended a patient's link", "%(actor)s ended a patient's link of %(names)s"),
)
READ = Action(
    "patient_link.read",
    "Open an appointment by a patient's link",
    AuditSentence("%(actor)s opened an appointment", "%(actor)s opened an appointment of %(names)s"),
)
