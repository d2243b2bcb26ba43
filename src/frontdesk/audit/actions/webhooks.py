"""Of webhooks."""

from frontdesk.audit.sentences import Action, AuditSentence

ACTIONS = (
    Action("console.add_webhook", "Add a webhook", AuditSentence("%(actor)s added a webhook")),
    Action("console.remove_webhook", "Remove a webhook", AuditSentence("%(actor)s removed a webhook")),
    Action(
        "console.rotate_webhook_secret",
        "Create a new secret of a webhook",
        AuditSentence("%(actor)s created a new secret of a webhook"),
    ),
    Action(
        "console.test_webhook",
        "Send a test message to a webhook",
        AuditSentence("%(actor)s sent a test message to a webhook"),
    ),
    Action("console.pause_webhook", "Pause a webhook", AuditSentence("%(actor)s paused a webhook")),
    Action("console.resume_webhook", "Resume a webhook", AuditSentence("%(actor)s resumed a webhook")),
    Action(
        "console.replay_webhook",
        "Send the events of a webhook again",
        AuditSentence("%(actor)s sent the events of a webhook again"),
    ),
    Action("command.add_webhook", "Add a webhook by command", AuditSentence("%(actor)s added a webhook")),
    Action("command.remove_webhook", "Remove a webhook by command", AuditSentence("%(actor)s removed a webhook")),
    Action(
        "command.rotate_webhook_secret",
        "Create a new secret of a webhook by command",
        AuditSentence("%(actor)s created a new secret of a webhook"),
    ),
)
