"""Of the practice file and the practice."""

from frontdesk.audit.sentences import Action, AuditSentence

ACTIONS = (
    Action(
        "console.import_practice_file",
        "Import the practice file",
        AuditSentence("%(actor)s imported the practice file"),
    ),
    Action(
        "console.export_practice_file",
        "Export the practice file",
        AuditSentence("%(actor)s exported the practice file"),
    ),
    Action(
        "console.change_booking_rules", "Change the booking rules", AuditSentence("%(actor)s changed the booking rules")
    ),
    Action(
        "console.change_closures",
        "Change the closures of locations",
        AuditSentence("%(actor)s changed the closures of locations", "%(actor)s changed the closures of %(names)s"),
    ),
    Action(
        "console.add_location",
        "Add a location",
        AuditSentence("%(actor)s added a location", "%(actor)s added the location %(names)s"),
    ),
    Action(
        "console.change_location",
        "Change a location",
        AuditSentence("%(actor)s changed a location", "%(actor)s changed the location %(names)s"),
    ),
    Action(
        "console.remove_location",
        "Remove a location",
        AuditSentence("%(actor)s removed a location", "%(actor)s removed the location %(names)s"),
    ),
    Action(
        "console.add_provider",
        "Add a provider",
        AuditSentence("%(actor)s added a provider", "%(actor)s added the provider %(names)s"),
    ),
    Action(
        "console.change_provider",
        "Change a provider",
        AuditSentence("%(actor)s changed a provider", "%(actor)s changed the provider %(names)s"),
    ),
    Action(
        "console.remove_provider",
        "Remove a provider",
        AuditSentence("%(actor)s removed a provider", "%(actor)s removed the provider %(names)s"),
    ),
    Action("console.add_visit_type", "Add a visit type", AuditSentence("%(actor)s added a visit type")),
    Action("console.change_visit_type", "Change a visit type", AuditSentence("%(actor)s changed a visit type")),
    Action("console.remove_visit_type", "Remove a visit type", AuditSentence("%(actor)s removed a visit type")),
    Action("console.add_procedure", "Add a procedure", AuditSentence("%(actor)s added a procedure")),
    Action("console.change_procedure", "Change a procedure", AuditSentence("%(actor)s changed a procedure")),
    Action("console.remove_procedure", "Remove a procedure", AuditSentence("%(actor)s removed a procedure")),
    Action(
        "command.export_patients",
        "Export the practice file with patients",
        AuditSentence(
            "%(actor)s exported the practice file with patients",
            "%(actor)s exported the practice file with the data of %(names)s",
        ),
    ),
    Action(
        "command.import_patients",
        "Import patients",
        AuditSentence("%(actor)s imported patients", "%(actor)s imported the patients %(names)s"),
    ),
    Action("command.suspend_practice", "Suspend the practice", AuditSentence("%(actor)s suspended the practice")),
    Action("command.resume_practice", "Resume the practice", AuditSentence("%(actor)s resumed the practice")),
    Action("command.remove_practice", "Remove the practice", AuditSentence("%(actor)s removed the practice")),
)
