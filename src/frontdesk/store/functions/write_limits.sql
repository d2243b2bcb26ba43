-- Limits on the writes of a client: on those of each kind in an hour, and on the upcoming appointments that it has booked for one
-- patient. The limits come with the write, as {"writesPerHour", "upcomingPerPatient"}; 0 is unlimited.

-- The limit that a write would exceed and the seconds until it would not, or nulls. p_patient is whom it books for, null for
-- other writes. Writes on their way to another system count: they may be executed.
CREATE OR REPLACE FUNCTION reached_write_limit(
    p_practice bigint, p_client text, p_operation text, p_patient text, p_limits jsonb, p_now timestamptz,
    OUT reached text, OUT seconds integer
)
LANGUAGE plpgsql AS $$
DECLARE
    v_per_hour integer := coalesce((p_limits ->> 'writesPerHour')::integer, 0);
    v_upcoming integer := coalesce((p_limits ->> 'upcomingPerPatient')::integer, 0);
    v_since    timestamptz := date_trunc('minute', p_now) - interval '1 hour';
    v_used     bigint;
    v_booked   bigint;
    v_minute   timestamptz;
    v_frees    timestamptz;
    v_first    timestamptz;
BEGIN
    IF v_per_hour > 0 THEN
        SELECT coalesce(sum(c.writes), 0) INTO v_used FROM write_count c
        WHERE c.practice_id = p_practice AND c.client_id = p_client AND c.operation = p_operation AND c.minute >= v_since;
        SELECT v_used + count(*) INTO v_used FROM upstream_write w
        WHERE w.practice_id = p_practice AND w.actor = p_client AND w.operation = p_operation AND w.phase = 'executing';
        IF v_used >= v_per_hour THEN
            reached := 'writesPerHour';
            FOR v_minute, v_booked IN
                SELECT c.minute, c.writes FROM write_count c
                WHERE c.practice_id = p_practice AND c.client_id = p_client AND c.operation = p_operation
                  AND c.minute >= v_since
                ORDER BY c.minute
            LOOP
                v_used := v_used - v_booked;
                v_frees := v_minute + interval '61 minutes';  -- the minute counts until an hour after its end
                EXIT WHEN v_used < v_per_hour;
            END LOOP;
            seconds := greatest(1, ceil(extract(epoch FROM coalesce(v_frees, p_now) - p_now)));
            RETURN;
        END IF;
    END IF;
    IF p_patient IS NOT NULL AND v_upcoming > 0 THEN
        SELECT count(*), min(a.starts_at) INTO v_used, v_frees FROM appointment a
        WHERE a.practice_id = p_practice AND a.patient_id = p_patient AND a.starts_at > p_now
          AND a.booked_by = p_client AND a.status <> 'cancelled';
        SELECT v_used + count(*), least(v_frees, min(r.starts_at)) INTO v_used, v_frees FROM upstream_record r
        WHERE r.practice_id = p_practice AND r.booked_for = p_patient AND r.starts_at > p_now
          AND r.booked_by = p_client AND r.cancelled_at IS NULL;
        SELECT count(*), min((w.data ->> 'startsAt')::timestamptz) INTO v_booked, v_first FROM upstream_write w
        WHERE w.practice_id = p_practice AND w.actor = p_client AND w.phase = 'executing' AND w.change = 'book'
          AND w.data ->> 'patientId' = p_patient;
        IF v_used + v_booked >= v_upcoming THEN
            reached := 'upcomingPerPatient';
            -- Cancelling one of them helps sooner.
            seconds := greatest(1, least(86400, ceil(extract(epoch FROM least(v_frees, v_first) - p_now))));
        END IF;
    END IF;
END $$;

-- Raises an alarm and an event about the first refusal in an hour.
CREATE OR REPLACE FUNCTION report_write_limit(p_practice bigint, p_client text, p_reached text, p_now timestamptz)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_hourly boolean := p_reached = 'writesPerHour';
BEGIN
    INSERT INTO write_limit (practice_id, client_id) VALUES (p_practice, p_client) ON CONFLICT DO NOTHING;
    UPDATE write_limit t SET
        hour_alarm_at = CASE WHEN v_hourly THEN p_now ELSE t.hour_alarm_at END,
        upcoming_alarm_at = CASE WHEN v_hourly THEN t.upcoming_alarm_at ELSE p_now END
    WHERE t.practice_id = p_practice AND t.client_id = p_client
      AND coalesce(CASE WHEN v_hourly THEN t.hour_alarm_at ELSE t.upcoming_alarm_at END, '-infinity')
          <= p_now - interval '1 hour';
    IF FOUND THEN
        INSERT INTO outbox (practice_id, type, subject, occurred_at)
        VALUES (p_practice, 'client.writeLimitReached',
                jsonb_build_object('clientId', p_client, 'limit', p_reached), p_now);
    END IF;
END $$;

-- Refuses a write that would exceed a limit of its client; null if it may be executed. p_data is that of the write. The client's
-- row stays locked until the write has ended, so that its writes are counted one after the other, and before anything else that
-- a write locks but its intent.
CREATE OR REPLACE FUNCTION refuse_over_limit(
    p_practice bigint, p_client text, p_operation text, p_change text, p_data jsonb, p_now timestamptz
)
RETURNS change_outcome
LANGUAGE plpgsql AS $$
DECLARE
    v_patient text := CASE WHEN p_change = 'book' THEN p_data ->> 'patientId' END;
    v_refusal record;
BEGIN
    IF NOT p_data ? 'limits' THEN
        RETURN NULL;
    END IF;
    PERFORM FROM write_limit t WHERE t.practice_id = p_practice AND t.client_id = p_client FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO write_limit (practice_id, client_id) VALUES (p_practice, p_client) ON CONFLICT DO NOTHING;
        PERFORM FROM write_limit t WHERE t.practice_id = p_practice AND t.client_id = p_client FOR UPDATE;
    END IF;
    v_refusal := reached_write_limit(p_practice, p_client, p_operation, v_patient, p_data -> 'limits', p_now);
    IF v_refusal.reached IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM report_write_limit(p_practice, p_client, v_refusal.reached, p_now);
    RETURN ('rate_limited', NULL, jsonb_build_object('limit', v_refusal.reached, 'seconds', v_refusal.seconds), '{}',
            NULL, NULL)::change_outcome;
END $$;

-- Counts an executed write of a client that has limits.
CREATE OR REPLACE FUNCTION count_write(
    p_practice bigint, p_client text, p_operation text, p_data jsonb, p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT p_data ? 'limits' THEN
        RETURN;
    END IF;
    DELETE FROM write_count c
    WHERE c.practice_id = p_practice AND c.client_id = p_client AND c.operation = p_operation
      AND c.minute < date_trunc('minute', p_now) - interval '1 hour';
    INSERT INTO write_count AS c (practice_id, client_id, operation, minute, writes)
    VALUES (p_practice, p_client, p_operation, date_trunc('minute', p_now), 1)
    ON CONFLICT (practice_id, client_id, operation, minute) DO UPDATE SET writes = c.writes + 1;
END $$;
