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
        '\U00011000-\U00011FFF';
BEGIN
    FOR v_practice IN SELECT practice_id FROM practice LOOP
        PERFORM set_config('frontdesk.practice_id', v_practice::text, true);
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
