-- Row triggers on the shards of each worker, because Citus has no others. Names are qualified: the search path of the
-- session that changes a row does not reach the worker.

CREATE OR REPLACE FUNCTION frontdesk.count_calendar_change() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    v_stays  boolean := TG_OP = 'UPDATE' AND NEW.provider_id = OLD.provider_id;
    v_change bigint[];
BEGIN
    IF TG_OP <> 'INSERT' AND NOT v_stays THEN
        v_change := frontdesk.changed_range(OLD.starts_at, OLD.busy_until, NULL);
        INSERT INTO frontdesk.calendar_version AS c (practice_id, provider_id, version, recent)
        VALUES (OLD.practice_id, OLD.provider_id, 1, v_change)
        ON CONFLICT (practice_id, provider_id) DO UPDATE SET
            version = c.version + 1, recent = frontdesk.newest_changes(c.version + 1, excluded.recent, c.recent);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        IF v_stays THEN
            v_change := frontdesk.changed_range(
                least(OLD.starts_at, NEW.starts_at), greatest(OLD.busy_until, NEW.busy_until), NULL
            );
        ELSE
            v_change := frontdesk.changed_range(NEW.starts_at, NEW.busy_until, NULL);
        END IF;
        INSERT INTO frontdesk.calendar_version AS c (practice_id, provider_id, version, recent)
        VALUES (NEW.practice_id, NEW.provider_id, 1, v_change)
        ON CONFLICT (practice_id, provider_id) DO UPDATE SET
            version = c.version + 1, recent = frontdesk.newest_changes(c.version + 1, excluded.recent, c.recent);
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER calendar_change AFTER INSERT OR UPDATE OR DELETE ON frontdesk.appointment
    FOR EACH ROW EXECUTE FUNCTION frontdesk.count_calendar_change();
ALTER TABLE frontdesk.appointment ENABLE ALWAYS TRIGGER calendar_change;
CREATE OR REPLACE TRIGGER hold_change AFTER INSERT OR UPDATE ON frontdesk.slot_hold
    FOR EACH ROW EXECUTE FUNCTION frontdesk.count_calendar_change();

-- Each worker has a sequence of its own, and a shard that moves would get smaller ids, which look old. The clock goes
-- on, whichever worker it is: microseconds, and some bits of the sequence to tell apart what happens at once.
CREATE OR REPLACE FUNCTION frontdesk.number_event() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.event_id := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1024 + NEW.event_id % 1024;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION frontdesk.number_audit_record() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.record_id := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1024 + NEW.record_id % 1024;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION frontdesk.number_attempt() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.attempt_id := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1024 + NEW.attempt_id % 1024;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER attempt_number BEFORE INSERT ON frontdesk.webhook_attempt
    FOR EACH ROW EXECUTE FUNCTION frontdesk.number_attempt();
CREATE OR REPLACE TRIGGER event_number BEFORE INSERT ON frontdesk.outbox
    FOR EACH ROW EXECUTE FUNCTION frontdesk.number_event();
CREATE OR REPLACE TRIGGER audit_record_number BEFORE INSERT ON frontdesk.audit_record
    FOR EACH ROW EXECUTE FUNCTION frontdesk.number_audit_record();
