from tests.support.audited_features import Audited

AUDITED = Audited(quiet_actions={"AgentView.is_sandbox"})
