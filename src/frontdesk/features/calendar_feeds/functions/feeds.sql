-- Calendar feeds.

CREATE OR REPLACE FUNCTION calendar_feed_of(p_practice bigint, p_digest bytea)
RETURNS TABLE (feed_id text, provider_id integer, with_names boolean, slug text, version bigint)
LANGUAGE plpgsql ROWS 1 AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('frontdesk.practice_id', p_practice::text, true);
    RETURN QUERY
    SELECT f.feed_id, f.provider_id, f.with_names, p.slug, p.version
    FROM calendar_feed f JOIN practice p ON p.practice_id = f.practice_id
    WHERE f.practice_id = p_practice AND f.digest = p_digest AND f.revoked_at IS NULL AND NOT p.suspended;
END $$;
