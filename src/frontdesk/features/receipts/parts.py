from frontdesk.feature import Parts
from frontdesk.features.receipts import actions, get_receipt, list_receipts
from frontdesk.features.receipts.patients_panel import PANEL
from frontdesk.features.receipts.receipts import Receipts

PARTS = Parts(
    operations=(list_receipts.OPERATION, get_receipt.OPERATION),
    actions=(actions.ISSUE, actions.DOWNLOAD),
    patients_panels=(PANEL,),
    services=lambda core: (Receipts(core.database, core.keys, core.audit_heads, core.settings.public_url, core.clock),),
)
