-- What the last changes of a calendar touched, so that a cache reads no more than that again: a row of the array for each
-- change, the newest first, with its version and the minutes from the first start to the last end of its appointments.
ALTER TABLE calendar_version ADD COLUMN recent bigint[] NOT NULL DEFAULT '{}';
