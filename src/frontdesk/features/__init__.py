"""The features beyond the contract's core, in the order in which the core iterates over them."""

from frontdesk.features import notes

FEATURES = (notes.FEATURE,)
