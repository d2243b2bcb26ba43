-- Whether clients with the scope notes:read may read the note.
ALTER TABLE desk_note ADD COLUMN for_agents boolean NOT NULL DEFAULT false;
