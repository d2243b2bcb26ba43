CREATE TABLE lost_item (
    practice_id bigint NOT NULL REFERENCES practice,
    item_id     text NOT NULL,
    what        text NOT NULL,
    found_at    timestamptz NOT NULL,
    PRIMARY KEY (practice_id, item_id)
);
ALTER TABLE lost_item ENABLE ROW LEVEL SECURITY;
ALTER TABLE lost_item FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON lost_item USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT, DELETE ON lost_item TO frontdesk_service;
