-- An e-mail address, and an identity at the provider, belong to one staff member of each practice, not of the whole
-- installation: otherwise an admin of one practice could claim the address of another practice's staff. A node of the
-- previous release cannot add staff after this, because its statement names the old constraint.
ALTER TABLE staff DROP CONSTRAINT operator_email_key;
ALTER TABLE staff DROP CONSTRAINT operator_oidc_issuer_oidc_subject_key;
ALTER TABLE staff ADD UNIQUE (practice_id, email);
ALTER TABLE staff ADD UNIQUE (practice_id, oidc_issuer, oidc_subject);
CREATE INDEX staff_email ON staff (email);
CREATE INDEX staff_identity ON staff (oidc_issuer, oidc_subject);
