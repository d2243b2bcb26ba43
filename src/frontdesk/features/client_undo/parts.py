from frontdesk.feature import Core, Parts
from frontdesk.features.client_undo import actions, pages
from frontdesk.features.client_undo.client_undo import ClientUndos
from frontdesk.features.client_undo.store import ClientUndoStore


def _services(core: Core) -> tuple[object, ...]:
    return (ClientUndos(ClientUndoStore(core.database), core.engine),)


PARTS = Parts(
    actions=actions.ACTIONS,
    pages=pages.PAGES,
    client_panels=(pages.PANEL,),
    services=_services,
)
