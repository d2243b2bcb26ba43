-- Identifiers that clients give to appointments and patients.

-- Notes identifiers of a write before it is executed, and returns when it began to.
CREATE OR REPLACE FUNCTION reserve_identifiers(
    p_practice bigint, p_client text, p_kind text, p_systems text[], p_values text[], p_intent bytea, p_subject text
) RETURNS timestamptz
LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    FOR n IN 1 .. cardinality(p_systems) LOOP
        INSERT INTO external_identifier AS e
        VALUES (p_practice, p_client, p_kind, p_systems[n], p_values[n], p_intent, p_subject, false, v_now)
        ON CONFLICT (practice_id, client_id, kind, system, value) DO UPDATE
        SET intent_id = excluded.intent_id, subject = excluded.subject, created_at = excluded.created_at
        WHERE NOT e.settled AND e.intent_id IS DISTINCT FROM excluded.intent_id;
    END LOOP;
    RETURN v_now;
END $$;

-- Forgets identifiers that were noted since then for a write that was refused. Earlier ones belong to another request with
-- the same key, which may have been executed.
CREATE OR REPLACE FUNCTION release_identifiers(
    p_practice bigint, p_client text, p_kind text, p_systems text[], p_values text[], p_intent bytea, p_since timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    FOR n IN 1 .. cardinality(p_systems) LOOP
        DELETE FROM external_identifier e
        WHERE e.practice_id = p_practice AND e.client_id = p_client AND e.kind = p_kind AND e.system = p_systems[n]
          AND e.value = p_values[n] AND e.intent_id = p_intent AND NOT e.settled AND e.created_at >= p_since;
    END LOOP;
END $$;

-- Removes up to p_limit identifiers of writes that nobody has seen the end of.
CREATE OR REPLACE FUNCTION delete_unsettled_identifiers(p_practice bigint, p_before timestamptz, p_limit integer)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    done integer;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    DELETE FROM external_identifier t
    WHERE t.practice_id = p_practice AND (t.client_id, t.kind, t.system, t.value) IN (
        SELECT o.client_id, o.kind, o.system, o.value FROM external_identifier o
        WHERE o.practice_id = p_practice AND NOT o.settled AND o.created_at < p_before
        ORDER BY o.created_at LIMIT p_limit FOR UPDATE SKIP LOCKED
    );
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END $$;

-- Gives identifiers to a record for good; those of another record stay there.
CREATE OR REPLACE FUNCTION assign_identifiers(
    p_practice bigint, p_client text, p_kind text, p_systems text[], p_values text[], p_subject text
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    FOR n IN 1 .. cardinality(p_systems) LOOP
        INSERT INTO external_identifier AS e
        VALUES (p_practice, p_client, p_kind, p_systems[n], p_values[n], NULL, p_subject, true, clock_timestamp())
        ON CONFLICT (practice_id, client_id, kind, system, value) DO UPDATE
        SET subject = excluded.subject, settled = true
        WHERE NOT e.settled;
    END LOOP;
END $$;

-- Takes from a record the identifiers that its client gave before, except these.
CREATE OR REPLACE FUNCTION remove_other_identifiers(
    p_practice bigint, p_client text, p_kind text, p_systems text[], p_values text[], p_subject text
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    DELETE FROM external_identifier e
    WHERE e.practice_id = p_practice AND e.client_id = p_client AND e.kind = p_kind AND e.subject = p_subject
      AND NOT EXISTS (
          SELECT FROM unnest(p_systems, p_values) AS kept (system, value)
          WHERE kept.system = e.system AND kept.value = e.value
      );
END $$;

-- The record that has an identifier.
CREATE OR REPLACE FUNCTION identified_subject(
    p_practice bigint, p_client text, p_kind text, p_system text, p_value text, OUT subject text
)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    SELECT CASE WHEN e.settled THEN e.subject
           ELSE coalesce(i.result ->> 'appointmentId', i.result ->> 'patientId') END INTO subject
    FROM external_identifier e
    LEFT JOIN intent i ON i.practice_id = p_practice AND i.intent_id = e.intent_id AND i.state = 'consumed'
    WHERE e.practice_id = p_practice AND e.client_id = p_client AND e.kind = p_kind AND e.system = p_system
      AND e.value = p_value;
END $$;

-- The identifiers of records, in the order in which they were given.
CREATE OR REPLACE FUNCTION identifiers_of(p_practice bigint, p_client text, p_subjects text[])
RETURNS TABLE (subject text, system text, value text)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT e.subject, e.system, e.value
    FROM external_identifier e
    LEFT JOIN intent i ON i.practice_id = p_practice AND i.intent_id = e.intent_id AND i.state = 'consumed'
    WHERE e.practice_id = p_practice AND e.client_id = p_client AND e.subject = ANY (p_subjects)
      AND (e.settled OR i.intent_id IS NOT NULL)
    ORDER BY e.created_at, e.system, e.value;
END $$;
