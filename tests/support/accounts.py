"""The account of services that tests start, and how they stop."""

import os

# Tests of root share its data directories with the service, also where there is a dedicated account.
SAME_ACCOUNT = {"FRONTDESK_RUN_AS": "nobody"} if os.geteuid() == 0 else {}
NO_DRAIN = {"FRONTDESK_DRAIN_SECONDS": "0"}
