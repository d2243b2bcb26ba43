-- Counts the changes of each provider's calendar, so that a cache can tell whether its answers are still fresh.

-- Per statement, so that loading many appointments counts once for each provider. The trigger fires after the exclusion
-- constraint was checked, and providers are counted in order of their id, so writers cannot deadlock here.
CREATE OR REPLACE FUNCTION count_calendar_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO calendar_version AS c (practice_id, provider_id, version)
    SELECT DISTINCT practice_id, provider_id, 1 FROM changed ORDER BY practice_id, provider_id
    ON CONFLICT (practice_id, provider_id) DO UPDATE SET version = c.version + 1;
    RETURN NULL;
END $$;

-- An update may move an appointment from one provider to another: both are counted.
CREATE OR REPLACE FUNCTION count_calendar_update() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO calendar_version AS c (practice_id, provider_id, version)
    SELECT practice_id, provider_id, 1 FROM before UNION SELECT practice_id, provider_id, 1 FROM after
    ORDER BY practice_id, provider_id
    ON CONFLICT (practice_id, provider_id) DO UPDATE SET version = c.version + 1;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER calendar_insert AFTER INSERT ON appointment REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_calendar_change();
CREATE OR REPLACE TRIGGER calendar_update AFTER UPDATE ON appointment REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION count_calendar_update();
CREATE OR REPLACE TRIGGER calendar_delete AFTER DELETE ON appointment REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_calendar_change();
-- A hold that expires changes nothing here: readers compare its time with the clock.
CREATE OR REPLACE TRIGGER hold_insert AFTER INSERT ON slot_hold REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_calendar_change();
CREATE OR REPLACE TRIGGER hold_update AFTER UPDATE ON slot_hold REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION count_calendar_update();
-- ALWAYS: also in sessions that turn ordinary triggers off for a bulk load.
ALTER TABLE appointment ENABLE ALWAYS TRIGGER calendar_insert;
ALTER TABLE appointment ENABLE ALWAYS TRIGGER calendar_update;
ALTER TABLE appointment ENABLE ALWAYS TRIGGER calendar_delete;

-- The versions that everything computed from a practice's directory and appointments depends on: that of the directory,
-- and the provider and the number of changes of each calendar as integers in network byte order. The directory's is null
-- for an unknown practice.
CREATE OR REPLACE FUNCTION calendar_versions(p_practice bigint, OUT version bigint, OUT calendars bytea)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    SELECT p.version,
           (SELECT string_agg(int8send(c.provider_id) || int8send(c.version), '')
            FROM calendar_version c WHERE c.practice_id = p_practice)
    INTO version, calendars
    FROM practice p WHERE p.practice_id = p_practice;
END $$;

-- Used by the previous release: the sum over all calendars; nulls for an unknown practice.
CREATE OR REPLACE FUNCTION calendar_state(p_practice bigint, OUT version bigint, OUT calendar bigint)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    SELECT p.version,
           (SELECT coalesce(sum(c.version), 0)::bigint FROM calendar_version c WHERE c.practice_id = p_practice)
    INTO version, calendar
    FROM practice p WHERE p.practice_id = p_practice;
END $$;
