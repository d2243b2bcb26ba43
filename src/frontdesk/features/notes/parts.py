from frontdesk.feature import Parts
from frontdesk.features.notes import list_notes
from frontdesk.features.notes.shared import SharedNotes

PARTS = Parts(
    operations=(list_notes.OPERATION,),
    services=lambda core: (SharedNotes(core.database),),
)
