-- Holds: times that clients keep for a few minutes before they book them. A hold counts while it is live and held_until is
-- in the future, so that it expires without anything having to run. Nothing is locked after a hold and the count of its
-- provider's calendar.

-- Ends a hold of the client. Returns whether it held its time until now.
CREATE OR REPLACE FUNCTION end_hold(p_practice bigint, p_hold text, p_client text, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE slot_hold h SET live = false
    WHERE h.practice_id = p_practice AND h.hold_id = p_hold AND h.client_id = p_client AND h.live
      AND h.held_until > p_now;
    RETURN FOUND;
END $$;

-- Holds a time for the client. Holds that have expired are ended first: they would exclude it. The client's own lock makes
-- its number of holds exact; nothing is locked after it.
CREATE OR REPLACE FUNCTION change_hold(p_practice bigint, c jsonb, p_actor text, p_now timestamptz)
RETURNS change_outcome
LANGUAGE plpgsql AS $$
DECLARE
    v_capacity   integer;
    v_lane       integer;
    v_held       bigint;
    v_this_hour  bigint;
    v_starts     timestamptz := (c ->> 'startsAt')::timestamptz;
    v_busy_until timestamptz := (c ->> 'busyUntil')::timestamptz;
    v_provider   integer := (c ->> 'providerId')::integer;
    v_id         text := c ->> 'holdId';
BEGIN
    SELECT capacity INTO v_capacity FROM provider
    WHERE practice_id = p_practice AND provider_id = v_provider FOR NO KEY UPDATE;
    IF directory_has_changed(p_practice, c) THEN
        RETURN ('stale', NULL, NULL, '{}', NULL, NULL)::change_outcome;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended(p_actor, p_practice));
    SELECT count(*) FILTER (WHERE h.live AND h.held_until > p_now), count(*) INTO v_held, v_this_hour
    FROM slot_hold h
    WHERE h.practice_id = p_practice AND h.client_id = p_actor AND h.held_at > p_now - interval '1 hour';
    IF v_held >= (c ->> 'maxHolds')::integer THEN
        RETURN ('conflict', 'too_many_holds', NULL, '{}', NULL, NULL)::change_outcome;
    ELSIF v_this_hour >= (c ->> 'maxHoldsPerHour')::integer THEN
        RETURN ('conflict', 'too_many_holds_this_hour', NULL, '{}', NULL, NULL)::change_outcome;
    END IF;
    UPDATE slot_hold h SET live = false
    WHERE h.practice_id = p_practice AND h.provider_id = v_provider AND h.live AND h.held_until <= p_now;
    v_lane := open_lane(p_practice, v_provider, v_capacity, v_starts, v_busy_until, NULL, p_now);
    IF v_lane IS NULL THEN
        RETURN ('slot_unavailable', NULL, NULL, '{}', NULL, NULL)::change_outcome;
    END IF;
    INSERT INTO slot_hold (
        practice_id, hold_id, client_id, provider_id, location_id, visit_type_id, procedure_id, lane, starts_at, ends_at,
        busy_until, held_at, held_until, live
    ) VALUES (
        p_practice, v_id, p_actor, v_provider, (c ->> 'locationId')::integer, (c ->> 'visitTypeId')::integer,
        (c ->> 'procedureId')::integer, v_lane, v_starts, (c ->> 'endsAt')::timestamptz, v_busy_until, p_now,
        (c ->> 'heldUntil')::timestamptz, true
    );
    RETURN ('executed', NULL, jsonb_build_object('holdId', v_id), ARRAY[v_id], NULL, NULL)::change_outcome;
END $$;

CREATE OR REPLACE FUNCTION change_release(p_practice bigint, c jsonb, p_actor text, p_now timestamptz)
RETURNS change_outcome
LANGUAGE plpgsql AS $$
DECLARE
    v_id text := c ->> 'holdId';
BEGIN
    IF NOT end_hold(p_practice, v_id, p_actor, p_now) THEN
        RETURN ('conflict', 'hold_ended', NULL, ARRAY[v_id], NULL, NULL)::change_outcome;
    END IF;
    RETURN ('executed', NULL, jsonb_build_object('holdId', v_id), ARRAY[v_id], NULL, NULL)::change_outcome;
END $$;

-- A client's hold that is live at p_now.
CREATE OR REPLACE FUNCTION find_hold(p_practice bigint, p_client text, p_hold text, p_now timestamptz)
RETURNS SETOF slot_hold
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT * FROM slot_hold h
    WHERE h.practice_id = p_practice AND h.client_id = p_client AND h.hold_id = p_hold AND h.live
      AND h.held_until > p_now;
END $$;

-- The holds that are live at p_now and start in [p_from, p_to).
CREATE OR REPLACE FUNCTION list_holds(
    p_practice bigint, p_from timestamptz, p_to timestamptz, p_now timestamptz
)
RETURNS SETOF slot_hold
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT * FROM slot_hold h
    WHERE h.practice_id = p_practice AND h.live AND h.held_until > p_now
      AND h.starts_at >= p_from AND h.starts_at < p_to
    ORDER BY h.starts_at, h.hold_id;
END $$;

-- Deletes holds that began before p_before, at most p_limit.
CREATE OR REPLACE FUNCTION delete_old_holds(p_practice bigint, p_before timestamptz, p_limit integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    done integer;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    DELETE FROM slot_hold t WHERE t.practice_id = p_practice AND t.hold_id = ANY (ARRAY(
        SELECT h.hold_id FROM slot_hold h
        WHERE h.practice_id = p_practice AND h.held_at < p_before
        ORDER BY h.held_at LIMIT p_limit FOR UPDATE SKIP LOCKED
    ));
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END $$;
