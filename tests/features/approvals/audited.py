from tests.support.audited_features import Audited

AUDITED = Audited(
    quiet_actions={"Approvals.count"},
    forms={"/approvals/{approval_id}/approve": {}, "/approvals/{approval_id}/refuse": {}},
)
