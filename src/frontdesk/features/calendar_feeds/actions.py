from frontdesk.audit.sentences import Action, AuditSentence

_ADDED = AuditSentence("%(actor)s added a calendar feed", "%(actor)s added a calendar feed for %(names)s")
_REVOKED = AuditSentence("%(actor)s revoked a calendar feed", "%(actor)s revoked a calendar feed of %(names)s")

ADD = Action("console.add_feed", "Add a calendar feed", _ADDED)
REVOKE = Action("console.revoke_feed", "Revoke a calendar feed", _REVOKED)
ADD_BY_COMMAND = Action("command.add_feed", "Add a calendar feed by command", _ADDED)
ADD_WITH_NAMES = Action(
    "command.add_feed_with_names",
    "Add a calendar feed with names by command",
    AuditSentence(
        "%(actor)s added a calendar feed with names", "%(actor)s added a calendar feed with names for %(names)s"
    ),
)
REVOKE_BY_COMMAND = Action("command.revoke_feed", "Revoke a calendar feed by command", _REVOKED)

ACTIONS = (ADD, REVOKE, ADD_BY_COMMAND, ADD_WITH_NAMES, REVOKE_BY_COMMAND)
