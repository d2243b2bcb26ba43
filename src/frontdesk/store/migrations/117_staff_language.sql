-- The language in which a staff member reads the console. Null: as the browser prefers.
ALTER TABLE staff ADD COLUMN language text CHECK (length(language) <= 35);
