"""Of the service as a whole."""

from frontdesk.audit.sentences import Action, AuditSentence

ACTIONS = (
    Action("command.rotate_keys", "Rotate the keys", AuditSentence("%(actor)s rotated the keys")),
    Action("command.reencrypt_keys", "Encrypt the keys again", AuditSentence("%(actor)s encrypted the keys again")),
    Action("command.backup", "Make a backup", AuditSentence("%(actor)s made a backup")),
    Action("command.restore", "Restore a backup", AuditSentence("%(actor)s restored a backup")),
)
