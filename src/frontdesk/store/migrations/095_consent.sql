-- How the agreement to a write was given; null where nobody was asked.
ALTER TABLE audit_record ADD COLUMN consent text;

-- The least consent that the practice demands, by operation.
ALTER TABLE practice ADD COLUMN consent jsonb NOT NULL DEFAULT '{}';
