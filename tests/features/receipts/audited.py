from tests.support.audited_features import Audited

# Its callers record who got the receipt: the engine an operation, the page and the command an action.
AUDITED = Audited(quiet_actions={"Receipts.issue"})
