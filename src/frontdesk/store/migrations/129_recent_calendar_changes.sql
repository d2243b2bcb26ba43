-- What the last changes of a calendar touched, so that a cache reads no more than that again. The array has a row for each
-- change, the newest first: its version, the minutes from the first start to the last end of its appointments or holds, and
-- a random number.
ALTER TABLE calendar_version ADD COLUMN recent bigint[] NOT NULL DEFAULT '{}';
