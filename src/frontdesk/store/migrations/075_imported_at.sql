-- When the practice file was last imported: since then no record of the directory has changed.
ALTER TABLE practice ADD COLUMN imported_at timestamptz NOT NULL DEFAULT now();
