-- Whether the user of the host has agreed to a challenge while its call waits; a no deletes the challenge.
ALTER TABLE intent ADD COLUMN agreed boolean NOT NULL DEFAULT false;
