from frontdesk.feature import Parts
from frontdesk.features.approvals import actions, pages
from frontdesk.features.approvals.approvals import Approvals

PARTS = Parts(
    actions=(actions.LOOK, actions.APPROVE, actions.REFUSE),
    pages=pages.PAGES,
    navigation=pages.NAVIGATION,
    notices=pages.NOTICES,
    calendar_panels=(pages.PANEL,),
    services=lambda core: (Approvals(core.database, core.on_calendar_change),),
)
