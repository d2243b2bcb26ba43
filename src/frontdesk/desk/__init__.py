"""What staff do at the desk: actions that check the role, do their work and leave an audit record."""
