-- How often a provider's calendar has changed. Whoever remembers what was computed from appointments compares: as long as
-- the sum over a practice's providers and the version of its directory are the same, so is everything computed from them.
--
-- A row per provider, because its lock is held until the change commits: bookings of one provider wait for each other
-- anyway, those of a practice do not.
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

-- Counted by triggers, so that no way of changing an appointment is forgotten, and per statement, so that loading many
-- appointments counts once for each provider. It comes after the exclusion constraint has been satisfied, and providers
-- are counted in order of their id: nobody who holds one of these rows waits for somebody who wants it.
CREATE FUNCTION count_calendar_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO calendar_version AS c (practice_id, provider_id, version)
    SELECT DISTINCT practice_id, provider_id, 1 FROM changed ORDER BY practice_id, provider_id
    ON CONFLICT (practice_id, provider_id) DO UPDATE SET version = c.version + 1;
    RETURN NULL;
END $$;

-- An appointment may move from one provider to another.
CREATE FUNCTION count_calendar_update() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO calendar_version AS c (practice_id, provider_id, version)
    SELECT practice_id, provider_id, 1 FROM before UNION SELECT practice_id, provider_id, 1 FROM after
    ORDER BY practice_id, provider_id
    ON CONFLICT (practice_id, provider_id) DO UPDATE SET version = c.version + 1;
    RETURN NULL;
END $$;

CREATE TRIGGER calendar_insert AFTER INSERT ON appointment REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_calendar_change();
CREATE TRIGGER calendar_update AFTER UPDATE ON appointment REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION count_calendar_update();
CREATE TRIGGER calendar_delete AFTER DELETE ON appointment REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_calendar_change();
-- Also in sessions that turn ordinary triggers off for the sake of a bulk load.
ALTER TABLE appointment ENABLE ALWAYS TRIGGER calendar_insert;
ALTER TABLE appointment ENABLE ALWAYS TRIGGER calendar_update;
ALTER TABLE appointment ENABLE ALWAYS TRIGGER calendar_delete;

-- What everything computed from a practice's directory and appointments rests on, at this moment. NULLs, which are the
-- same as nothing that is remembered, where there is no such practice.
CREATE FUNCTION calendar_state(p_practice bigint, OUT version bigint, OUT calendar bigint)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    SELECT p.version,
           (SELECT coalesce(sum(c.version), 0)::bigint FROM calendar_version c WHERE c.practice_id = p_practice)
    INTO version, calendar
    FROM practice p WHERE p.practice_id = p_practice;
END $$;
