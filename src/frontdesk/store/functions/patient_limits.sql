-- Limits on the patients that a client reads: budgets per hour and day, known patients, failed matches.

-- The seconds until a budget allows these patients, null if it allows them now. A patient that was read within the
-- window costs nothing.
CREATE OR REPLACE FUNCTION patient_budget_wait(
    p_practice bigint, p_client text, p_patients text[], p_now timestamptz, p_window interval, p_budget integer
)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_since  timestamptz := p_now - p_window;
    v_new    integer;
    v_excess integer;
    v_frees  timestamptz;
BEGIN
    IF p_budget = 0 THEN
        RETURN NULL;
    END IF;
    SELECT cardinality(p_patients) - count(*) INTO v_new FROM patient_read r
    WHERE r.practice_id = p_practice AND r.client_id = p_client AND r.patient_id = ANY (p_patients)
      AND r.read_at > v_since;
    IF v_new = 0 THEN
        RETURN NULL;
    END IF;
    SELECT v_new + count(*) - p_budget INTO v_excess FROM patient_read r
    WHERE r.practice_id = p_practice AND r.client_id = p_client AND r.read_at > v_since;
    IF v_excess <= 0 THEN
        RETURN NULL;
    END IF;
    SELECT r.read_at INTO v_frees FROM patient_read r
    WHERE r.practice_id = p_practice AND r.client_id = p_client AND r.read_at > v_since
      AND r.patient_id <> ALL (p_patients)
    ORDER BY r.read_at OFFSET v_excess - 1 LIMIT 1;
    RETURN ceil(extract(epoch FROM coalesce(v_frees, p_now) + p_window - p_now));
END $$;

-- Counts the patients of an answer against the client's budgets. Returns the exceeded budget and the seconds until it
-- allows the answer, or nulls. All or nothing: an answer that is refused costs nothing. The first refusal in a window
-- raises an alarm and an event.
CREATE OR REPLACE FUNCTION spend_patient_budget(
    p_practice bigint, p_client text, p_subjects text[], p_now timestamptz, p_per_hour integer, p_per_day integer,
    OUT exceeded text, OUT seconds integer
)
LANGUAGE plpgsql AS $$
DECLARE
    b          patient_budget;
    v_patients text[] := ARRAY(SELECT DISTINCT s.id FROM unnest(p_subjects) AS s (id) WHERE s.id LIKE 'pat\_%');
    v_patient  text;
    v_read_before integer;
    v_alarm    boolean;
BEGIN
    IF cardinality(v_patients) = 0 OR p_per_hour + p_per_day = 0 THEN
        RETURN;
    END IF;
    -- A patient who was read within the hour costs nothing in either budget. In the last minute of that hour it is counted
    -- under the lock, because others may count it as read or not.
    IF cardinality(v_patients) = 1 THEN
        UPDATE patient_read r SET read_at = greatest(r.read_at, p_now)
        WHERE r.practice_id = p_practice AND r.client_id = p_client AND r.patient_id = v_patients[1]
          AND r.read_at > p_now - interval '59 minutes';
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    SELECT * INTO b FROM patient_budget t WHERE t.practice_id = p_practice AND t.client_id = p_client FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO patient_budget (practice_id, client_id) VALUES (p_practice, p_client) ON CONFLICT DO NOTHING;
        SELECT * INTO b FROM patient_budget t WHERE t.practice_id = p_practice AND t.client_id = p_client FOR UPDATE;
    END IF;

    exceeded := 'day';
    seconds := patient_budget_wait(p_practice, p_client, v_patients, p_now, interval '1 day', p_per_day);
    IF seconds IS NULL THEN
        exceeded := 'hour';
        seconds := patient_budget_wait(p_practice, p_client, v_patients, p_now, interval '1 hour', p_per_hour);
    END IF;
    IF seconds IS NULL THEN
        exceeded := NULL;
        UPDATE patient_read r SET read_at = greatest(r.read_at, p_now)
        WHERE r.practice_id = p_practice AND r.client_id = p_client AND r.patient_id = ANY (v_patients);
        GET DIAGNOSTICS v_read_before = ROW_COUNT;
        IF v_read_before < cardinality(v_patients) THEN
            DELETE FROM patient_read r
            WHERE r.practice_id = p_practice AND r.client_id = p_client AND r.read_at <= p_now - interval '1 day';
            FOREACH v_patient IN ARRAY v_patients LOOP
                INSERT INTO patient_read (practice_id, client_id, patient_id, read_at)
                VALUES (p_practice, p_client, v_patient, p_now) ON CONFLICT DO NOTHING;
            END LOOP;
        END IF;
        RETURN;
    END IF;
    IF exceeded = 'day' THEN
        v_alarm := coalesce(b.day_alarm_at <= p_now - interval '1 day', true);
        UPDATE patient_budget t SET day_alarm_at = p_now
        WHERE t.practice_id = p_practice AND t.client_id = p_client AND v_alarm;
    ELSE
        v_alarm := coalesce(b.hour_alarm_at <= p_now - interval '1 hour', true);
        UPDATE patient_budget t SET hour_alarm_at = p_now
        WHERE t.practice_id = p_practice AND t.client_id = p_client AND v_alarm;
    END IF;
    IF v_alarm THEN
        INSERT INTO outbox (practice_id, type, subject, occurred_at)
        VALUES (p_practice, 'client.patientBudgetExceeded',
                jsonb_build_object('clientId', p_client, 'budget', exceeded), p_now);
    END IF;
END $$;

-- Records a read of protected data and counts its patients, in one round trip before the answer is sent. A read over
-- budget is recorded as rate_limited. Does not wait for the disk: a crash may lose the last reads, never a write.
CREATE OR REPLACE FUNCTION record_read(
    p_practice bigint, p_at timestamptz, p_actor text, p_operation text, p_outcome text, p_subjects text[],
    p_request_id text, p_per_hour integer, p_per_day integer, OUT exceeded text, OUT seconds integer
)
LANGUAGE plpgsql AS $$
DECLARE
    spent record;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    IF p_outcome = 'executed' AND p_per_hour + p_per_day > 0 THEN
        spent := spend_patient_budget(p_practice, p_actor, p_subjects, p_at, p_per_hour, p_per_day);
        exceeded := spent.exceeded;
        seconds := spent.seconds;
    END IF;
    PERFORM append_audit(p_practice, p_at, p_actor, p_operation,
        CASE WHEN exceeded IS NULL THEN p_outcome ELSE 'rate_limited' END, p_subjects, p_request_id);
END $$;

-- Those of the patients that a client has matched, created or booked.
CREATE OR REPLACE FUNCTION known_to(p_practice bigint, p_client text, p_patients text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN ARRAY(
        SELECT k.patient_id FROM known_patient k
        WHERE k.practice_id = p_practice AND k.client_id = p_client AND k.patient_id = ANY (p_patients)
    );
END $$;

-- Counts a match of a client by its keyed hashes: of the name and date of birth, and of the whole question. Returns the
-- reason and the seconds to wait if the answer must be withheld, or nulls. A question that missed before is answered
-- again and not counted: it reveals nothing new. After a few misses of one person the client has to wait, longer each
-- time, and after p_misses for an hour up to a day; after p_all misses in an hour it has to wait for any match. A hit
-- resets nothing: the caller may have created the record that it hits.
CREATE OR REPLACE FUNCTION count_match(
    p_practice bigint, p_client text, p_person bytea, p_question bytea, p_hit boolean, p_now timestamptz,
    p_misses integer, p_all integer, OUT refused text, OUT seconds integer
)
LANGUAGE plpgsql AS $$
DECLARE
    m       match_miss;
    a       match_miss;
    v_until timestamptz;
    v_pause interval;
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    IF NOT p_hit THEN
        DELETE FROM match_miss t
        WHERE t.practice_id = p_practice AND t.client_id = p_client AND t.last_at <= p_now - interval '7 days';
        INSERT INTO match_miss (practice_id, client_id, person, questions, misses, began_at, last_at)
        VALUES (p_practice, p_client, p_person, '{}', 0, p_now, p_now), (p_practice, p_client, '', '{}', 0, p_now, p_now)
        ON CONFLICT DO NOTHING;
    END IF;
    -- The person before the client: callers that lock in one order cannot deadlock.
    SELECT * INTO m FROM match_miss t
    WHERE t.practice_id = p_practice AND t.client_id = p_client AND t.person = p_person FOR UPDATE;
    IF p_question = ANY (m.questions) THEN
        RETURN;
    END IF;
    SELECT * INTO a FROM match_miss t
    WHERE t.practice_id = p_practice AND t.client_id = p_client AND t.person = '' FOR UPDATE;
    IF a.began_at <= p_now - interval '1 hour' THEN
        a.began_at := p_now;
        a.misses := 0;
    END IF;

    IF m.paused_until > p_now THEN
        refused := 'person';
        v_until := m.paused_until;
    ELSIF p_all > 0 AND a.misses >= p_all THEN
        refused := 'client';
        v_until := a.began_at + interval '1 hour';
    END IF;
    IF refused IS NOT NULL THEN
        seconds := ceil(extract(epoch FROM v_until - p_now));
        RETURN;
    END IF;
    IF p_hit THEN
        RETURN;
    END IF;

    m.misses := m.misses + 1;
    m.questions := (m.questions || p_question)[greatest(1, cardinality(m.questions) - 98):];  -- the last hundred
    IF m.misses >= p_misses THEN
        v_pause := least(interval '1 day', interval '1 hour' * 2 ^ least(m.misses - p_misses, 5));
    ELSIF m.misses = p_misses - 1 THEN
        v_pause := interval '1 minute';
    ELSIF m.misses = p_misses - 2 THEN
        v_pause := interval '15 seconds';
    END IF;
    UPDATE match_miss t SET
        misses = m.misses, last_at = p_now, paused_until = p_now + v_pause, questions = m.questions
    WHERE t.practice_id = p_practice AND t.client_id = p_client AND t.person = p_person;
    UPDATE match_miss t SET misses = a.misses + 1, began_at = a.began_at, last_at = p_now
    WHERE t.practice_id = p_practice AND t.client_id = p_client AND t.person = '';
    IF m.misses >= p_misses OR a.misses + 1 = p_all THEN
        INSERT INTO outbox (practice_id, type, subject, occurred_at)
        VALUES (p_practice, 'client.matchingLocked', jsonb_build_object('clientId', p_client), p_now);
    END IF;
END $$;
