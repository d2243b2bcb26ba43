-- A short PIN unlocks a session that its owner has opened in the same browser; it is never a first factor.
CREATE TABLE staff_pin (
    staff_id           text PRIMARY KEY REFERENCES staff,
    sealed             bytea NOT NULL,  -- salt and scrypt hash, encrypted with the operator's secret key
    lock_after_minutes integer NOT NULL CHECK (lock_after_minutes BETWEEN 2 AND 30)
);
ALTER TABLE staff_session
    ADD COLUMN desk       bytea,        -- SHA-256 of a random token in the browser that the session was opened in
    ADD COLUMN locked_at  timestamptz,
    ADD COLUMN wrong_pins integer NOT NULL DEFAULT 0;
CREATE INDEX staff_session_desk ON staff_session (desk) WHERE desk IS NOT NULL;
GRANT SELECT, INSERT, UPDATE, DELETE ON staff_pin TO frontdesk_service;
