from frontdesk.feature import Parts
from frontdesk.features.notes import actions, list_notes, pages
from frontdesk.features.notes.notes import Notes, mark_visits

PARTS = Parts(
    operations=(list_notes.OPERATION,),
    actions=(actions.ADD, actions.REMOVE),
    pages=pages.PAGES,
    notices=pages.NOTICES,
    panels=(pages.PANEL,),
    mark_visits=mark_visits,
    services=lambda core: (Notes(core.database),),
)
