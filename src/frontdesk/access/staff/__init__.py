"""Staff of a practice: sign-in links, identity providers and console sessions."""
