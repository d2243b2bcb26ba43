from tests.support.audited_features import Audited

AUDITED = Audited(quiet_actions={"PatientLinks.of", "_Visit.render"})
