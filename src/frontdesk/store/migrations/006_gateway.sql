-- What the gateway counts: calls of a client in its current minute and its current 30 days, and failed token calls.

-- A minute begins with the first call after the one before it has ended. Workers lease calls of it and report which of
-- them were made; leases end with their minute. The cap is checked against what is leased, the quota is charged only
-- with what was made: a worker that dies costs the client nothing.
CREATE TABLE client_usage (
    practice_id       bigint NOT NULL REFERENCES practice,
    client_id         text NOT NULL,
    minute_started_at timestamptz NOT NULL,
    minute_leased     bigint NOT NULL,
    minute_used       bigint NOT NULL,
    late              bigint NOT NULL,  -- leased in the minute before, and not reported when that ended
    quota_started_at  timestamptz NOT NULL,
    quota_used        bigint NOT NULL,
    PRIMARY KEY (practice_id, client_id)
) WITH (fillfactor = 50);

ALTER TABLE client_usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE client_usage FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON client_usage USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT, UPDATE ON client_usage TO frontdesk_service;

-- Takes a worker's report on its lease (p_window, p_used, p_unused) and leases more: what is waiting now, or, where
-- more is left, what was asked for, up to an eighth of the rest. Small leases near the cap leave something for others.
-- Times are the database's, so that all nodes share one clock.
CREATE FUNCTION lease_calls(
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
        -- Also when the clock was set back: nobody waits for a minute that lies ahead.
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
        IF v_now > u.minute_started_at + v_reporting THEN  -- whoever has not reported by now is gone
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

-- Failed token calls in the current minute, by the hash of a client id or of an address. Whoever fails here belongs to
-- no practice yet: a small table of its own, from which the housekeeping removes what is over.
CREATE TABLE token_failure (
    subject    bytea PRIMARY KEY,
    started_at timestamptz NOT NULL,
    failures   integer NOT NULL
);
GRANT SELECT, INSERT, UPDATE, DELETE ON token_failure TO frontdesk_service;

-- Which of the two subjects is at its cap, and for how many seconds more.
CREATE FUNCTION token_calls_refused(p_client bytea, p_client_cap integer, p_address bytea, p_address_cap integer)
RETURNS TABLE (subject bytea, seconds double precision)
LANGUAGE sql STABLE AS $$
    SELECT f.subject, date_part('epoch', f.started_at + interval '60 seconds' - now())
    FROM (VALUES (p_client, p_client_cap), (p_address, p_address_cap)) AS s (subject, cap)
    JOIN token_failure f USING (subject)
    WHERE f.failures >= s.cap AND now() - f.started_at BETWEEN interval '-60 seconds' AND interval '60 seconds'
$$;

-- Counts a failed call for both. False when it was one too many, and is therefore not counted.
CREATE FUNCTION count_failed_token_call(p_client bytea, p_client_cap integer, p_address bytea, p_address_cap integer)
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_now     timestamptz := now();
    v_subject bytea;
BEGIN
    -- Whoever counts the same subject waits here; clients come before addresses, so that nobody waits in a circle.
    FOREACH v_subject IN ARRAY ARRAY[p_client, p_address] LOOP
        INSERT INTO token_failure VALUES (v_subject, v_now, 0) ON CONFLICT DO NOTHING;
        UPDATE token_failure f SET
            started_at = CASE WHEN v_now - f.started_at BETWEEN interval '-60 seconds' AND interval '60 seconds'
                              THEN f.started_at ELSE v_now END,
            failures = CASE WHEN v_now - f.started_at BETWEEN interval '-60 seconds' AND interval '60 seconds'
                            THEN f.failures ELSE 0 END
        WHERE f.subject = v_subject;
    END LOOP;
    IF EXISTS (SELECT FROM token_calls_refused(p_client, p_client_cap, p_address, p_address_cap)) THEN
        RETURN false;
    END IF;
    UPDATE token_failure f SET failures = f.failures + 1 WHERE f.subject IN (p_client, p_address);
    RETURN true;
END $$;
