"""Of calendar feeds."""

from frontdesk.audit.sentences import Action, AuditSentence

ACTIONS = (
    Action(
        "console.add_feed",
        "Add a calendar feed",
        AuditSentence("%(actor)s added a calendar feed", "%(actor)s added a calendar feed for %(names)s"),
    ),
    Action(
        "console.revoke_feed",
        "Revoke a calendar feed",
        AuditSentence("%(actor)s revoked a calendar feed", "%(actor)s revoked a calendar feed of %(names)s"),
    ),
    Action(
        "command.add_feed",
        "Add a calendar feed by command",
        AuditSentence("%(actor)s added a calendar feed", "%(actor)s added a calendar feed for %(names)s"),
    ),
    Action(
        "command.add_feed_with_names",
        "Add a calendar feed with names by command",
        AuditSentence(
            "%(actor)s added a calendar feed with names", "%(actor)s added a calendar feed with names for %(names)s"
        ),
    ),
    Action(
        "command.revoke_feed",
        "Revoke a calendar feed by command",
        AuditSentence("%(actor)s revoked a calendar feed", "%(actor)s revoked a calendar feed of %(names)s"),
    ),
)
