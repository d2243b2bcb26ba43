"""The pages of the console, one module per subject. No SQL and no rules here."""
