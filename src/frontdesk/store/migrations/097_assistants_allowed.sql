-- Whether staff of the practice may connect assistants, and those that are connected may call.
ALTER TABLE practice ADD COLUMN assistants boolean NOT NULL DEFAULT true;
