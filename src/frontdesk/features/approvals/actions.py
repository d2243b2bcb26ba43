"""What audit records say of looking at pending approvals and of deciding them."""

from frontdesk.audit.sentences import Action, AuditSentence

LOOK = Action(
    "console.approvals",
    "Look at pending approvals",
    AuditSentence("%(actor)s looked at the pending approvals", "%(actor)s looked at pending approvals about %(names)s"),
    is_view=True,
)
APPROVE = Action(
    "console.approve_change",
    "Approve a change of an agent",
    AuditSentence("%(actor)s approved a change of an agent", "%(actor)s approved a change about %(names)s"),
)
REFUSE = Action(
    "console.refuse_change",
    "Refuse a change of an agent",
    AuditSentence("%(actor)s refused a change of an agent", "%(actor)s refused a change about %(names)s"),
)
