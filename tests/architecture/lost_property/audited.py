"""Becomes `audited.py` beside the tests of the feature that is added."""

from tests.support.audited_features import Audited

AUDITED = Audited(quiet_actions={"LostItems.of", "LostItems.prune"}, forms={"/lost-property": {"what": "A glove"}})
