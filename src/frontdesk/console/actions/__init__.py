"""Actions of staff beyond the operations, one module per subject. Each checks the role and leaves an audit record."""
