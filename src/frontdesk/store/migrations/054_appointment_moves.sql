-- The starts that rescheduled appointments had before. A listing orders appointments by the starts they had when it
-- began, so that a move between two of its pages neither skips nor repeats an appointment.
CREATE TABLE appointment_move (
    practice_id    bigint NOT NULL REFERENCES practice,
    appointment_id text NOT NULL,
    move           integer NOT NULL,  -- 1 for the first of the appointment
    starts_at      timestamptz NOT NULL,  -- before the move
    moved_at       timestamptz NOT NULL DEFAULT now(),  -- by the database's clock
    moved_by       xid8 NOT NULL DEFAULT pg_current_xact_id(),  -- the transaction, to compare with a snapshot
    PRIMARY KEY (practice_id, appointment_id, move)
);
CREATE INDEX appointment_move_recent ON appointment_move (practice_id, moved_at);
ALTER TABLE appointment_move ENABLE ROW LEVEL SECURITY;
ALTER TABLE appointment_move FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON appointment_move USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT ON appointment_move TO frontdesk_service;
