-- Tokens of a client end for good when it is disabled, its tokens are revoked, its secrets are replaced at once, or its
-- scopes or grant change. A token carries the value that its client had when it was issued, and is refused when the
-- client has a later one: comparing values of one row needs no clocks that agree. Null: no token was ended yet.
ALTER TABLE client ADD COLUMN tokens_not_before timestamptz;
