from frontdesk.audit.sentences import Action, AuditSentence

TRY_OUT = Action(
    "console.agent_view",
    "Try out the agent's view",
    AuditSentence("%(actor)s tried out the agent's view", "%(actor)s tried out the agent's view with %(names)s"),
)
