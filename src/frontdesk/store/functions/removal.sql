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
    -- A table stands before those that it refers to.
    FOREACH v_table IN ARRAY ARRAY[
        'webhook_attempt', 'webhook_delivery', 'webhook_secret', 'webhook_public_endpoint', 'webhook_endpoint',
        'calendar_feed', 'external_identifier', 'slot_hold', 'appointment_move', 'appointment_correction',
        'appointment_attendance', 'appointment_override', 'absence_appointment', 'provider_absence', 'desk_note',
        'patient_link', 'appointment', 'patient_read', 'known_patient', 'match_miss', 'patient_budget', 'patient',
        'patient_counter', 'event_trace', 'outbox', 'agreed_challenge', 'intent',
        'procedure', 'visit_type', 'provider', 'location', 'calendar_version', 'upstream_fault', 'upstream_write',
        'upstream_directory', 'upstream_record', 'client_usage', 'request_count', 'client', 'staff'
    ] LOOP
        EXECUTE format('DELETE FROM %I WHERE practice_id = $1', v_table) USING p_practice;
    END LOOP;
    UPDATE practice p SET
        slug = v_slug || '~' || p_practice, phone = NULL, suspended = true, scheduling_system = '{"kind": "native"}',
        consent = '{}', version = p.version + 1
    WHERE p.practice_id = p_practice RETURNING p.slug INTO v_slug;
    RETURN v_slug;
END $$;
