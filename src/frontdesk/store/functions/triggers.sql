-- Counts the changes of each provider's calendar, so that a cache can tell whether its answers are still fresh, and writes
-- down what the last ones touched, so that it need not read more than that again.

-- Per statement, so that loading many appointments counts once for each provider. The trigger fires after the exclusion
-- constraint was checked, and providers are counted in order of their id, so writers cannot deadlock here.
CREATE OR REPLACE FUNCTION count_calendar_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO calendar_version AS c (practice_id, provider_id, version, recent)
    SELECT practice_id, provider_id, 1, changed_range(min(starts_at), max(busy_until), NULL)
    FROM changed GROUP BY practice_id, provider_id ORDER BY practice_id, provider_id
    ON CONFLICT (practice_id, provider_id)
    DO UPDATE SET version = c.version + 1, recent = newest_changes(c.version + 1, excluded.recent, c.recent);
    RETURN NULL;
END $$;

-- New appointments. The lane of a single one is written down with the change.
CREATE OR REPLACE FUNCTION count_new_appointments() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO calendar_version AS c (practice_id, provider_id, version, recent)
    SELECT practice_id, provider_id, 1, changed_range(
        min(starts_at), max(busy_until), CASE WHEN count(*) = 1 AND every(status <> 'cancelled') THEN min(lane) END
    )
    FROM changed GROUP BY practice_id, provider_id ORDER BY practice_id, provider_id
    ON CONFLICT (practice_id, provider_id)
    DO UPDATE SET version = c.version + 1, recent = newest_changes(c.version + 1, excluded.recent, c.recent);
    RETURN NULL;
END $$;

-- An update may move an appointment from one provider to another: both are counted.
CREATE OR REPLACE FUNCTION count_calendar_update() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO calendar_version AS c (practice_id, provider_id, version, recent)
    SELECT practice_id, provider_id, 1, changed_range(min(starts_at), max(busy_until), NULL)
    FROM (SELECT practice_id, provider_id, starts_at, busy_until FROM before
          UNION ALL SELECT practice_id, provider_id, starts_at, busy_until FROM after) changed
    GROUP BY practice_id, provider_id ORDER BY practice_id, provider_id
    ON CONFLICT (practice_id, provider_id)
    DO UPDATE SET version = c.version + 1, recent = newest_changes(c.version + 1, excluded.recent, c.recent);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER calendar_insert AFTER INSERT ON appointment REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_new_appointments();
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
