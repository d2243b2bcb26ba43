from frontdesk.desk.blocks import Blocks
from frontdesk.feature import Core, Parts
from frontdesk.features.absences import actions, pages, panels
from frontdesk.features.absences.absences import Absences
from frontdesk.features.absences.store import AbsenceStore


def _services(core: Core) -> tuple[object, ...]:
    blocks = Blocks(core.database, core.engine.systems, core.on_calendar_change)
    return (Absences(AbsenceStore(core.database), core.engine, blocks),)


PARTS = Parts(
    actions=actions.ACTIONS,
    pages=pages.PAGES,
    covers={"/calendar": ("/away",)},
    notices=pages.NOTICES,
    calendar_panels=(panels.TOOL, panels.NOTICES),
    block_panels=(panels.BLOCK,),
    services=_services,
)
