from tests.support.audited_features import Audited

AUDITED = Audited(
    quiet_actions={
        "CalendarFeeds.read",  # not of staff; its disclosures are recorded by append_disclosure
        "Feeds.all",
    },
    forms={"/practice/feeds": {"provider": "10"}},
)
