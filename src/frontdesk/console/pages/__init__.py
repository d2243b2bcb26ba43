"""Pages of the console, one module per subject. They hold no SQL and no rules."""
