"""The features beyond the contract's core, in the order in which the core iterates over them."""

from frontdesk.features import absences, agent_view, calendar_feeds, notes, patient_links

FEATURES = (notes.FEATURE, agent_view.FEATURE, calendar_feeds.FEATURE, patient_links.FEATURE, absences.FEATURE)
