-- Names are compared by the usual transcription of letters that do not decompose. The same table is in
-- frontdesk.domain.names; a test compares the two. Per practice, because row-level security also applies to the owner.
DO $$
DECLARE
    v_practice bigint;
BEGIN
    FOR v_practice IN SELECT practice_id FROM practice LOOP
        PERFORM set_config('frontdesk.practice_id', v_practice::text, true);
        UPDATE patient SET name_key =
            replace(replace(replace(replace(
                translate(name_key, 'øłđðıħŧĸəɛɔɓɖɗƙƴ', 'olddihtkeeobddky'),
                'æ', 'ae'), 'œ', 'oe'), 'þ', 'th'), 'ŋ', 'ng')
        WHERE practice_id = v_practice AND name_key ~ '[øłđðıħŧĸəɛɔɓɖɗƙƴæœþŋ]';
    END LOOP;
END $$;
