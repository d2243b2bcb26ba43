"""Of clients and assistants."""

from frontdesk.audit.sentences import Action, AuditSentence

ACTIONS = (
    Action(
        "console.add_client",
        "Add a client",
        AuditSentence("%(actor)s added a client", "%(actor)s added the client %(names)s"),
    ),
    Action(
        "console.change_client",
        "Change a client",
        AuditSentence("%(actor)s changed a client", "%(actor)s changed the client %(names)s"),
    ),
    Action(
        "console.enable_client",
        "Enable a client",
        AuditSentence("%(actor)s enabled a client", "%(actor)s enabled the client %(names)s"),
    ),
    Action(
        "console.disable_client",
        "Disable a client",
        AuditSentence("%(actor)s disabled a client", "%(actor)s disabled the client %(names)s"),
    ),
    Action(
        "command.remove_client",
        "Remove a client",
        AuditSentence("%(actor)s removed a client", "%(actor)s removed the client %(names)s"),
    ),
    Action(
        "console.rotate_client_secret",
        "Create a new secret of a client",
        AuditSentence("%(actor)s created a new secret of a client", "%(actor)s created a new secret for %(names)s"),
    ),
    Action(
        "console.revoke_client_tokens",
        "Revoke the access tokens of a client",
        AuditSentence(
            "%(actor)s revoked the access tokens of a client", "%(actor)s revoked the access tokens of %(names)s"
        ),
    ),
    Action(
        "console.forget_client_misses",
        "Reset the failed matches of a client",
        AuditSentence(
            "%(actor)s reset the failed matches of a client", "%(actor)s reset the failed matches of %(names)s"
        ),
    ),
    Action(
        "console.connect_assistant",
        "Connect an assistant",
        AuditSentence("%(actor)s connected an assistant", "%(actor)s connected the assistant %(names)s"),
    ),
    Action(
        "console.disconnect_assistant",
        "Disconnect an assistant",
        AuditSentence("%(actor)s disconnected an assistant", "%(actor)s disconnected the assistant %(names)s"),
    ),
    Action(
        "command.read_events",
        "Read events",
        AuditSentence("%(actor)s read events", "%(actor)s read events about %(names)s"),
    ),
)
