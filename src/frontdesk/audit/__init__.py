"""The audit trail: appended with every write and every read of patient data, sealed, read and verified."""
