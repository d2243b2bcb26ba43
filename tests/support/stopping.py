"""How services that tests start stop."""

NO_DRAIN = {"FRONTDESK_DRAIN_SECONDS": "0"}
