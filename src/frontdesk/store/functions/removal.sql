-- Deletes everything about a practice but its audit trail, and its row, which the trail refers to: patients, appointments,
-- directory, clients, staff, webhooks and feeds. Its slug gets a ~, which no practice file can have, and is free for another
-- practice then. Only the login that owns the tables may delete from all of them: the service itself cannot run this.
CREATE OR REPLACE FUNCTION remove_practice(p_practice bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_slug  text;
    v_table text;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    SELECT p.slug INTO v_slug FROM practice p WHERE p.practice_id = p_practice FOR NO KEY UPDATE;
    PERFORM FROM provider p WHERE p.practice_id = p_practice ORDER BY p.provider_id FOR UPDATE;  -- after bookings in flight
    FOREACH v_table IN ARRAY ARRAY['staff_session', 'staff_link', 'staff_passkey', 'staff_pin'] LOOP
        EXECUTE format(
            'DELETE FROM %I WHERE staff_id IN (SELECT s.staff_id FROM staff s WHERE s.practice_id = $1)', v_table
        ) USING p_practice;
    END LOOP;
    FOREACH v_table IN ARRAY ARRAY['client_secret', 'authorization_code', 'refresh_token'] LOOP
        EXECUTE format(
            'DELETE FROM %I WHERE client_id IN (SELECT c.client_id FROM client c WHERE c.practice_id = $1)', v_table
        ) USING p_practice;
    END LOOP;
    -- Every table of rows by practice, those of features too; a table comes before those that it refers to.
    FOR v_table IN
        WITH RECURSIVE by_practice AS (
            SELECT c.oid, c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
            WHERE c.relnamespace = 'frontdesk'::regnamespace AND c.relkind = 'r' AND a.attname = 'practice_id'
        ), place AS (
            SELECT t.oid, 0 AS depth FROM by_practice t
            UNION
            SELECT k.confrelid, p.depth + 1 FROM place p JOIN pg_constraint k ON k.conrelid = p.oid
            WHERE k.contype = 'f' AND k.confrelid <> k.conrelid
        )
        SELECT t.relname FROM by_practice t JOIN place p ON p.oid = t.oid
        WHERE t.relname !~ '^audit_' AND t.relname NOT IN ('practice', 'appointment_trail')
        GROUP BY t.relname ORDER BY t.relname = 'calendar_version', max(p.depth), t.relname  -- which triggers write
    LOOP
        EXECUTE format('DELETE FROM %I WHERE practice_id = $1', v_table) USING p_practice;
    END LOOP;
    UPDATE practice p SET
        slug = v_slug || '~' || p_practice, phone = NULL, suspended = true, scheduling_system = '{"kind": "native"}',
        consent = '{}', features = '{}', trusted_hosts = '{}', version = p.version + 1
    WHERE p.practice_id = p_practice RETURNING p.slug INTO v_slug;
    RETURN v_slug;
END $$;
