-- Counts the changes of a provider's calendar. While the sum over a practice's providers and the version of its
-- directory are unchanged, everything computed from them is fresh.
--
-- One row per provider, because its lock is held until the change commits: bookings of one provider wait for each other
-- anyway, those of different providers do not.
CREATE TABLE calendar_version (
    practice_id bigint NOT NULL REFERENCES practice,
    provider_id integer NOT NULL,
    version     bigint NOT NULL,
    PRIMARY KEY (practice_id, provider_id)
) WITH (fillfactor = 50);

ALTER TABLE calendar_version ENABLE ROW LEVEL SECURITY;
ALTER TABLE calendar_version FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON calendar_version USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT, UPDATE ON calendar_version TO frontdesk_service;
