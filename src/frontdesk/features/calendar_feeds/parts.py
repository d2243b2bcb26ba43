from frontdesk.feature import Core, Parts
from frontdesk.features.calendar_feeds import actions, pages
from frontdesk.features.calendar_feeds.managing import Feeds
from frontdesk.features.calendar_feeds.reading import CalendarFeeds
from frontdesk.features.calendar_feeds.routes import feed_routes


def _services(core: Core) -> tuple[object, ...]:
    engine = core.engine
    reading = CalendarFeeds(
        core.database, engine.systems, engine.limiter, core.failed_attempts, engine.audit, core.clock
    )
    return Feeds(core.database), reading


PARTS = Parts(
    actions=actions.ACTIONS,
    pages=pages.PAGES,
    practice_tabs=pages.TABS,
    notices=pages.NOTICES,
    routes=feed_routes,
    services=_services,
)
