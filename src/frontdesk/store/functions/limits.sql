-- Rate limits and quotas of clients, and failed token calls.

-- Takes a worker's report on its lease (p_window, p_used, p_unused) and leases more: the calls that wait now, or, where
-- more is left, what was asked for, up to an eighth of the rest. Small leases near the limit leave calls for other
-- workers. Times are the database's, so that all nodes share one clock.
CREATE OR REPLACE FUNCTION lease_calls(
    p_practice bigint, p_client text, p_window timestamptz, p_used bigint, p_unused bigint, p_waiting bigint,
    p_asked bigint
)
RETURNS TABLE (
    granted bigint, minute_started_at timestamptz, minute_seconds double precision, minute_used bigint,
    per_minute integer, quota_seconds double precision, quota_used bigint, quota bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    u           client_usage;
    c           client;
    v_now       timestamptz := now();
    v_minute    CONSTANT interval := '60 seconds';
    v_quota     CONSTANT interval := '30 days';
    v_reporting CONSTANT interval := '5 seconds';
    v_free      bigint;
    v_granted   bigint := 0;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    SELECT * INTO STRICT c FROM client t WHERE t.client_id = p_client AND t.practice_id = p_practice;
    INSERT INTO client_usage VALUES (p_practice, p_client, v_now, 0, 0, 0, v_now, 0) ON CONFLICT DO NOTHING;
    SELECT * INTO u FROM client_usage t WHERE t.practice_id = p_practice AND t.client_id = p_client FOR UPDATE;

    IF p_window = u.minute_started_at THEN
        u.minute_used := u.minute_used + p_used;
        u.minute_leased := u.minute_leased - p_unused;
    ELSE
        u.late := greatest(0, u.late - p_used - p_unused);
    END IF;
    u.quota_used := u.quota_used + p_used;

    IF p_waiting + p_asked > 0 THEN
        -- Also when the clock was set back: a client must not wait for a minute that lies ahead.
        IF v_now - u.minute_started_at NOT BETWEEN -v_minute AND v_minute THEN
            u.late := greatest(0, u.minute_leased - u.minute_used);
            u.minute_started_at := v_now;
            u.minute_leased := 0;
            u.minute_used := 0;
        END IF;
        IF v_now >= u.quota_started_at + v_quota THEN
            u.quota_started_at := v_now;
            u.quota_used := 0;
        END IF;
        IF v_now > u.minute_started_at + v_reporting THEN  -- a worker that has not reported by now is gone
            u.late := 0;
        END IF;
        v_free := greatest(0, least(
            c.per_minute - u.minute_leased,
            c.quota - u.quota_used - u.late - (u.minute_leased - u.minute_used)
        ));
        v_granted := least(v_free, greatest(p_waiting, least(p_asked, v_free / 8)));
        u.minute_leased := u.minute_leased + v_granted;
    END IF;

    IF v_granted = 0 THEN  -- a crash of the database may lose a moment's report, never a lease
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    UPDATE client_usage t SET
        minute_started_at = u.minute_started_at, minute_leased = u.minute_leased, minute_used = u.minute_used,
        late = u.late, quota_started_at = u.quota_started_at, quota_used = u.quota_used
    WHERE t.practice_id = p_practice AND t.client_id = p_client;
    RETURN QUERY SELECT
        v_granted, u.minute_started_at, date_part('epoch', u.minute_started_at + v_minute - v_now), u.minute_used,
        c.per_minute, date_part('epoch', u.quota_started_at + v_quota - v_now), u.quota_used, c.quota;
END $$;

-- The subject at its cap of attempts in a minute that stays so the longest, and for how many seconds. No row: none is.
CREATE OR REPLACE FUNCTION attempts_at_cap(p_subjects bytea[], p_caps integer[])
RETURNS TABLE (capped bytea, seconds double precision)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
        SELECT f.subject, date_part('epoch', f.started_at + interval '60 seconds' - now())
        FROM unnest(p_subjects, p_caps) AS s (subject, cap) JOIN token_failure f ON f.subject = s.subject
        WHERE f.failures >= s.cap AND now() - f.started_at BETWEEN interval '-60 seconds' AND interval '60 seconds'
        ORDER BY f.started_at DESC LIMIT 1;
END $$;

-- Counts an attempt for every subject: a failed one for a client and an address, or a token that is issued. If one of
-- them is at its cap, nothing is counted and the row of attempts_at_cap is returned.
CREATE OR REPLACE FUNCTION count_attempt(p_subjects bytea[], p_caps integer[])
RETURNS TABLE (capped bytea, seconds double precision)
LANGUAGE plpgsql AS $$
DECLARE
    v_now     timestamptz := now();
    v_subject bytea;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);  -- a crash of the database may lose a moment's counts
    FOR v_subject IN SELECT u.subject FROM unnest(p_subjects) AS u (subject) ORDER BY 1 LOOP  -- in one order: no deadlock
        INSERT INTO token_failure VALUES (v_subject, v_now, 0) ON CONFLICT DO NOTHING;
        UPDATE token_failure f SET
            started_at = CASE WHEN v_now - f.started_at BETWEEN interval '-60 seconds' AND interval '60 seconds'
                              THEN f.started_at ELSE v_now END,
            failures = CASE WHEN v_now - f.started_at BETWEEN interval '-60 seconds' AND interval '60 seconds'
                            THEN f.failures ELSE 0 END
        WHERE f.subject = v_subject;
    END LOOP;
    RETURN QUERY SELECT * FROM attempts_at_cap(p_subjects, p_caps);
    IF NOT FOUND THEN
        UPDATE token_failure f SET failures = f.failures + 1 WHERE f.subject = ANY (p_subjects);
    END IF;
END $$;
