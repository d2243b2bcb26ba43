-- Removes invisible and direction-changing characters from texts that callers wrote before they were refused. Joiners
-- and variation selectors stay, because some scripts need them; so does a text that has nothing else.
DO $$
DECLARE
    v_practice bigint;
    v_hidden   text := '[\u00AD\u034F\u0600-\u0605\u061C\u06DD\u070F\u0890\u0891\u08E2\u115F\u1160\u17B4\u17B5\u180E'
        '\u200B\u200E\u200F\u2028-\u202E\u2060-\u206F\u3164\uE000-\uF8FF\uFDD0-\uFDEF\uFEFF\uFFA0\uFFF0-\uFFFB'
        '\uFFFE\uFFFF\U000110BD\U000110CD\U00013430-\U0001345F\U0001BCA0-\U0001BCA3\U0001D173-\U0001D17A'
        '\U000E0000-\U000E00FF\U000E01F0-\U000E0FFF\U000F0000-\U0010FFFF]';
BEGIN
    FOR v_practice IN SELECT practice_id FROM practice LOOP
        PERFORM set_config('frontdesk.practice_id', v_practice::text, true);
        UPDATE patient SET
            first_name = coalesce(nullif(regexp_replace(first_name, v_hidden, '', 'g'), ''), first_name),
            last_name = coalesce(nullif(regexp_replace(last_name, v_hidden, '', 'g'), ''), last_name),
            phone = regexp_replace(phone, v_hidden, '', 'g'),
            email = regexp_replace(email, v_hidden, '', 'g')
        WHERE practice_id = v_practice AND concat(first_name, last_name, phone, email) ~ v_hidden;
        UPDATE appointment SET cancellation_reason = regexp_replace(cancellation_reason, v_hidden, '', 'g')
        WHERE practice_id = v_practice AND cancellation_reason ~ v_hidden;
        UPDATE appointment SET cancellation_reason = NULL
        WHERE practice_id = v_practice AND btrim(cancellation_reason) = '';
    END LOOP;
END $$;
