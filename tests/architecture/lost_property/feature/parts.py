from frontdesk.background import Step
from frontdesk.feature import Parts
from frontdesk.features.lost_property import list_lost_items, pages
from frontdesk.features.lost_property.lost_items import ADD, LostItems

PARTS = Parts(
    operations=(list_lost_items.OPERATION,),
    actions=(ADD,),
    pages=pages.PAGES,
    navigation=pages.NAVIGATION,
    notices=pages.NOTICES,
    services=lambda core: (LostItems(core.database, core.clock),),
    steps=lambda _core, services: (Step("lost item pruning", services[LostItems].prune, every=600.0),),
    measure=lambda metrics, services: metrics.add_counter(
        "frontdesk_lost_items", "Lost items written down.", (), lambda: {(): services[LostItems].added}
    ),
)
