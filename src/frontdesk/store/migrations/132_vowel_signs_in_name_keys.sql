-- Vowel signs, viramas, Thai tones and the voicing of kana are part of the names that are compared (frontdesk.domain.names);
-- a test compares the two. A key already has the letters and digits of its name, so the new one is the name's characters
-- that are in the key or are such marks. Per practice, because row-level security also applies to the owner.
DO $$
DECLARE
    v_practice bigint;
    -- With the letters and digits between them.
    v_marks    text := '\u07A6-\u07B0\u0900-\u093B\u093E-\u094F\u0955-\u0963\u0981-\u0983\u09BE-\u09E3\u0A01-\u0A03'
        '\u0A3E-\u0A75\u0A81-\u0A83\u0ABE-\u0AE3\u0AFA-\u0B03\u0B3E-\u0B63\u0B82-\u0BD7\u0C00-\u0C04\u0C3E-\u0C63'
        '\u0C81-\u0C83\u0CBE-\u0D4D\u0D57\u0D62\u0D63\u0D81-\u0DF3\u0E31-\u0E3A\u0E47-\u0E4E\u0EB1-\u0ECD\u0F3E-\u0F81'
        '\u0F84\u0F8D-\u0FBC\u102B-\u1036\u1038-\u103E\u1056-\u108C\u108F-\u109D\u1712-\u1734\u1752-\u1773\u17B6-\u17D3'
        '\u1885\u1886\u1920-\u1938\u1A19-\u1A1B\u1A55-\u1A74\u1B00-\u1B04\u1B35-\u1B44\u1B80-\u1BAD\u1BE7-\u1BF3'
        '\u1C24-\u1C36\u1CE1\u1CF7\u2D7F\u3099\u309A\uA802-\uA827\uA82C\uA880-\uA8C5\uA8FF-\uA92A\uA947-\uA953'
        '\uA980-\uA983\uA9B4-\uA9C0\uA9E5-\uAA4D\uAA7B-\uAA7D\uAAEB-\uAAEF\uAAF5\uAAF6\uABE3-\uABEA\uABEC\uABED'
        '\U00010A01-\U00010A0C\U00010A0E\U00010A3F\U00011000-\U00011046\U00011070-\U000110B9\U000110C2'
        '\U00011127-\U00011134\U00011145-\U00011146\U00011180-\U000111C0\U000111C9\U000111CB-\U000111CC'
        '\U000111CE-\U000111CF\U0001122C-\U00011235\U00011237\U0001123E\U000112DF-\U000112E8\U000112EA-\U00011303'
        '\U0001133E-\U00011363\U00011435-\U00011445\U000114B0-\U000114C2\U000115AF-\U000115BF\U000115DC-\U00011640'
        '\U000116AB-\U000116B6\U0001171D-\U0001172B\U0001182C-\U00011839\U00011930-\U00011942\U000119D1-\U000119E0'
        '\U000119E4-\U00011A3E\U00011A47-\U00011A99\U00011C2F-\U00011C3F\U00011C92-\U00011D41\U00011D43-\U00011EF6'
        '\U00016F4F-\U00016F92\U00016FE4-\U00016FF1';
BEGIN
    FOR v_practice IN SELECT practice_id FROM practice LOOP
        EXECUTE format('SET LOCAL frontdesk.practice_id = %L', v_practice);  -- Citus sends no other setting to its workers
        UPDATE patient SET name_key = regexp_replace(
                lower(normalize(first_name, NFKD)), '[^' || v_marks || split_part(name_key, '|', 1) || ']', '', 'g'
            ) || '|' || split_part(name_key, '|', 2)
        WHERE practice_id = v_practice AND normalize(first_name, NFKD) ~ ('[' || v_marks || ']');
        UPDATE patient SET name_key = split_part(name_key, '|', 1) || '|' || regexp_replace(
                lower(normalize(last_name, NFKD)), '[^' || v_marks || split_part(name_key, '|', 2) || ']', '', 'g'
            )
        WHERE practice_id = v_practice AND normalize(last_name, NFKD) ~ ('[' || v_marks || ']');
    END LOOP;
END $$;
