"""The one path from a call to an operation: every check in the contract's order, confirmation, audit, answer."""
