from frontdesk.feature import Parts
from frontdesk.features.notes import list_notes
from frontdesk.features.notes.actions import ACTIONS
from frontdesk.features.notes.shared import SharedNotes

PARTS = Parts(
    operations=(list_notes.OPERATION,),
    actions=ACTIONS,
    services=lambda core: (SharedNotes(core.database),),
)
