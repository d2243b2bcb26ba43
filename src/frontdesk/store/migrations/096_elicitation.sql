-- Challenges that the user of the host has agreed to while their call waits; a no deletes the challenge. Not a column of
-- intent: nodes of the previous release read its rows through a function, and another shape would fail their statements.
CREATE TABLE agreed_challenge (
    practice_id bigint NOT NULL,
    intent_id   bytea NOT NULL,
    PRIMARY KEY (practice_id, intent_id),
    FOREIGN KEY (practice_id, intent_id) REFERENCES intent ON DELETE CASCADE
);
ALTER TABLE agreed_challenge ENABLE ROW LEVEL SECURITY;
ALTER TABLE agreed_challenge FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON agreed_challenge USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT ON agreed_challenge TO frontdesk_service;
