-- The directory of a practice: locations, providers, visit types, procedures, and their blocked time.

-- One statement, so that the directory and its version come from the same snapshot.
CREATE OR REPLACE FUNCTION load_directory(p_practice bigint) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN (
        SELECT jsonb_build_object(
            'practice', to_jsonb(p),
            'locations', (SELECT jsonb_agg(to_jsonb(l) ORDER BY l.location_id)
                          FROM location l WHERE l.practice_id = p_practice),
            'providers', (SELECT jsonb_agg(to_jsonb(v) ORDER BY v.provider_id)
                          FROM provider v WHERE v.practice_id = p_practice),
            'visit_types', (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.visit_type_id)
                            FROM visit_type t WHERE t.practice_id = p_practice),
            'procedures', (SELECT jsonb_agg(to_jsonb(r) ORDER BY r.visit_type_id, r.procedure_id)
                           FROM procedure r WHERE r.practice_id = p_practice)
        ) FROM practice p WHERE p.practice_id = p_practice
    );
END $$;

-- Blocks a provider's time or closes a location, or undoes that for the entry with the same start and end. Raises the
-- directory's version, so that a booking checked against the former directory is checked again. Outcomes: 'executed',
-- 'unchanged' (already blocked, or already free), 'not_found'.
CREATE OR REPLACE FUNCTION change_block(
    p_practice bigint, p_provider integer, p_location integer, p_block jsonb, p_remove boolean, p_actor text,
    p_operation text, p_subject text, p_now timestamptz, p_request_id text
)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_rows    jsonb;
    v_kept    jsonb;
    v_outcome text := 'unchanged';
    v_from    text := CASE WHEN p_provider IS NULL THEN 'first' ELSE 'starts' END;
    v_to      text := CASE WHEN p_provider IS NULL THEN 'last' ELSE 'ends' END;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    PERFORM FROM practice p WHERE p.practice_id = p_practice FOR NO KEY UPDATE;  -- before providers, as imports do
    IF p_provider IS NOT NULL THEN
        SELECT v.time_off INTO v_rows FROM provider v
        WHERE v.practice_id = p_practice AND v.provider_id = p_provider AND v.active FOR NO KEY UPDATE;
    ELSE
        -- Waits for bookings in progress. Later ones wait, and are judged by the new version.
        PERFORM FROM provider v WHERE v.practice_id = p_practice ORDER BY v.provider_id FOR NO KEY UPDATE;
        SELECT l.closures INTO v_rows FROM location l
        WHERE l.practice_id = p_practice AND l.location_id = p_location AND l.active FOR NO KEY UPDATE;
    END IF;
    IF v_rows IS NULL THEN
        RETURN 'not_found';
    END IF;
    SELECT coalesce(jsonb_agg(o.block ORDER BY o.place), '[]') INTO v_kept
    FROM jsonb_array_elements(v_rows) WITH ORDINALITY AS o (block, place)
    WHERE o.block ->> v_from <> p_block ->> v_from OR o.block ->> v_to <> p_block ->> v_to;
    IF p_remove = (jsonb_array_length(v_kept) < jsonb_array_length(v_rows)) THEN
        v_outcome := 'executed';
        v_kept := CASE WHEN p_remove THEN v_kept ELSE v_rows || jsonb_build_array(p_block) END;
        IF p_provider IS NOT NULL THEN
            UPDATE provider v SET time_off = v_kept WHERE v.practice_id = p_practice AND v.provider_id = p_provider;
        ELSE
            UPDATE location l SET closures = v_kept WHERE l.practice_id = p_practice AND l.location_id = p_location;
        END IF;
        UPDATE practice p SET version = p.version + 1 WHERE p.practice_id = p_practice;
    END IF;
    PERFORM append_audit(p_practice, p_now, p_actor, p_operation, v_outcome, ARRAY[p_subject], p_request_id);
    RETURN v_outcome;
END $$;

-- An import keeps all time that was blocked in the console. An entry of the file that equals a blocked one, as in an
-- exported file, is not added twice.
CREATE OR REPLACE FUNCTION with_blocks(p_stored jsonb, p_given jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_agg(o.block ORDER BY o.place), '[]') FROM (
        SELECT g.block, g.place FROM jsonb_array_elements(p_given) WITH ORDINALITY AS g (block, place)
        WHERE NOT EXISTS (
            SELECT FROM jsonb_array_elements(p_stored) AS s (block)
            WHERE s.block ->> 'by' IS NOT NULL AND s.block - 'by' = g.block - 'by'
        )
        UNION ALL
        SELECT s.block, jsonb_array_length(p_given) + s.place
        FROM jsonb_array_elements(p_stored) WITH ORDINALITY AS s (block, place) WHERE s.block ->> 'by' IS NOT NULL
    ) o
$$;
