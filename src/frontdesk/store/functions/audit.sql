-- The audit trail: records are appended with the work they record, and a sealer links them into a hash chain later.

CREATE OR REPLACE FUNCTION append_audit(
    p_practice bigint, p_at timestamptz, p_actor text, p_operation text, p_outcome text, p_subjects text[],
    p_request_id text
)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    PERFORM append_write_audit(p_practice, p_at, p_actor, p_operation, p_outcome, p_subjects, p_request_id, NULL, NULL,
        NULL);
END $$;

-- Called by functions that have set the practice. p_consent: how the agreement to an executed write was given; null where
-- nobody was asked. p_challenge: what was read back before, by the intent p_intent; null if nothing was.
CREATE OR REPLACE FUNCTION append_write_audit(
    p_practice bigint, p_at timestamptz, p_actor text, p_operation text, p_outcome text, p_subjects text[],
    p_request_id text, p_consent text, p_intent bytea, p_challenge text
)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    new_id    bigint;
    v_subject text;
    v_patient text;
BEGIN
    IF p_actor LIKE 'fd\_as\_%' THEN  -- an assistant: the record also names the staff member who connected it
        p_subjects := p_subjects || ARRAY(
            SELECT c.staff_id FROM client c WHERE c.client_id = p_actor AND NOT c.staff_id = ANY (p_subjects));
    END IF;
    INSERT INTO audit_record (practice_id, at, actor, operation, outcome, subject_ids, request_id, consent, challenge)
    VALUES (p_practice, p_at, p_actor, p_operation, p_outcome, p_subjects, p_request_id, p_consent,
            sha256(p_intent || convert_to(p_challenge, 'UTF8')))
    RETURNING record_id INTO new_id;
    INSERT INTO audit_unsealed (practice_id, record_id) VALUES (p_practice, new_id);
    IF p_challenge IS NOT NULL THEN
        v_patient := (SELECT s.id FROM unnest(p_subjects) AS s (id) WHERE s.id LIKE 'pat\_%' LIMIT 1);
        INSERT INTO agreed_challenge (practice_id, record_id, intent_id, challenge, patient_id)
        VALUES (p_practice, new_id, p_intent, p_challenge, v_patient);
    END IF;
    -- Every write and every match is recorded here, whichever scheduling system executed it.
    IF p_outcome = 'executed' AND p_actor LIKE 'fd\_%'
       AND p_operation IN ('match_patient', 'create_patient', 'book_appointment') THEN
        FOREACH v_subject IN ARRAY p_subjects LOOP
            IF v_subject LIKE 'pat\_%' THEN
                INSERT INTO known_patient (practice_id, client_id, patient_id, known_since)
                VALUES (p_practice, p_actor, v_subject, p_at) ON CONFLICT DO NOTHING;
            END IF;
        END LOOP;
    END IF;
END $$;

-- Does not wait for the disk: a crash may lose the last reads from the trail, never a write.
CREATE OR REPLACE FUNCTION append_read_audit(
    p_practice bigint, p_at timestamptz, p_actor text, p_operation text, p_outcome text, p_subjects text[],
    p_request_id text
)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM append_audit(p_practice, p_at, p_actor, p_operation, p_outcome, p_subjects, p_request_id);
END $$;

-- One field of a record as it enters the hash: its length in bytes, a colon, the text. The length keeps text from being
-- shifted between neighbouring fields. Python builds the same bytes in frontdesk.audit.trail. The cast lets the planner
-- inline it: an integer || text is not immutable.
CREATE OR REPLACE FUNCTION audit_field(value text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT octet_length(value)::text || ':' || value $$;

-- Over the digest of the record, so that a receipt can show the way to a signed head without showing the records on it.
CREATE OR REPLACE FUNCTION audit_hash(previous bytea, r audit_record) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256(previous || sha256(convert_to(
        audit_field(r.practice_id::text) || audit_field(r.record_id::text)
        || audit_field((extract(epoch FROM r.at) * 1000000)::bigint::text)
        || audit_field(r.actor) || audit_field(r.operation) || audit_field(r.outcome)
        || audit_field(array_to_string(r.subject_ids, ',')) || audit_field(r.request_id)
        || coalesce(audit_field(r.consent), '') || coalesce(audit_field(encode(r.challenge, 'hex')), ''), 'UTF8')))
$$;

-- Whether a record of this operation belongs to an appointment's history. Reads do not.
CREATE OR REPLACE FUNCTION is_appointment_change(p_operation text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT p_operation IN (
        'book_appointment', 'cancel_appointment', 'confirm_attendance', 'reschedule_appointment',
        'console.record_arrived', 'console.record_completed', 'console.record_no_show', 'console.restore_appointment',
        'console.call_in', 'console.return_to_waiting', 'console.override_booking', 'console.override_move',
        'console.move_back'
    )
$$;

-- Links up to p_limit unsealed records of a practice to its chain and returns how many. The head's row lock makes
-- sealers of one practice take turns.
CREATE OR REPLACE FUNCTION seal_audit(p_practice bigint, p_limit integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    head      audit_head;
    r         audit_record;
    v_subject text;
    v_ids     bigint[] := '{}';
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    INSERT INTO audit_head (practice_id, sequence, hash) VALUES (p_practice, 0, '') ON CONFLICT DO NOTHING;
    SELECT * INTO head FROM audit_head h WHERE h.practice_id = p_practice FOR UPDATE;
    FOR r IN
        SELECT a.* FROM audit_unsealed u JOIN audit_record a USING (practice_id, record_id)
        WHERE u.practice_id = p_practice ORDER BY u.record_id LIMIT p_limit
    LOOP
        head.sequence := head.sequence + 1;
        head.hash := audit_hash(head.hash, r);
        v_ids := array_append(v_ids, r.record_id);
        INSERT INTO audit_seal (practice_id, sequence, record_id, hash)
        VALUES (p_practice, head.sequence, r.record_id, head.hash);
        IF is_appointment_change(r.operation) THEN
            FOREACH v_subject IN ARRAY r.subject_ids LOOP
                IF v_subject LIKE 'apt\_%' THEN
                    INSERT INTO appointment_trail (practice_id, appointment_id, record_id)
                    VALUES (p_practice, v_subject, r.record_id) ON CONFLICT DO NOTHING;
                END IF;
            END LOOP;
        END IF;
    END LOOP;
    IF cardinality(v_ids) > 0 THEN
        DELETE FROM audit_unsealed u WHERE u.practice_id = p_practice AND u.record_id = ANY (v_ids);
        UPDATE audit_head h SET sequence = head.sequence, hash = head.hash WHERE h.practice_id = p_practice;
    END IF;
    RETURN cardinality(v_ids);
END $$;

-- The service may update a head, because it seals: this keeps it from moving one back or replacing its hash.
CREATE OR REPLACE FUNCTION guard_audit_head() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.sequence <= OLD.sequence THEN
        RAISE insufficient_privilege USING MESSAGE = 'the head of an audit trail moves forward only';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER audit_head_forward BEFORE UPDATE ON audit_head
    FOR EACH ROW EXECUTE FUNCTION guard_audit_head();

-- Sealed records come from appointment_trail, which sealing fills; the others are read from the unsealed records. With a
-- generic plan: PostgreSQL takes a practice that is new in a large database for empty, and would begin with all its records.
CREATE OR REPLACE FUNCTION appointment_changes(p_practice bigint, p_appointments text[], p_operation text)
RETURNS TABLE (
    appointment_id text, record_id bigint, at timestamptz, actor text, operation text, outcome text, request_id text,
    consent text
)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT t.appointment_id, r.record_id, r.at, r.actor, r.operation, r.outcome, r.request_id, r.consent
    FROM appointment_trail t JOIN audit_record r ON r.practice_id = t.practice_id AND r.record_id = t.record_id
    WHERE t.practice_id = p_practice AND t.appointment_id = ANY (p_appointments)
      AND (p_operation IS NULL OR r.operation = p_operation)
    UNION ALL
    SELECT s.id, r.record_id, r.at, r.actor, r.operation, r.outcome, r.request_id, r.consent
    FROM audit_unsealed u JOIN audit_record r ON r.practice_id = u.practice_id AND r.record_id = u.record_id
    CROSS JOIN unnest(r.subject_ids) AS s (id)
    WHERE u.practice_id = p_practice AND s.id = ANY (p_appointments) AND is_appointment_change(r.operation)
      AND (p_operation IS NULL OR r.operation = p_operation)
    ORDER BY 2;
END $$;
