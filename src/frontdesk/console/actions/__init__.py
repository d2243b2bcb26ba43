"""What staff do beyond the 22 operations, one module per subject: each checks the role and leaves an audit record."""
