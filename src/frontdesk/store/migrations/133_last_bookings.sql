-- The last new appointment of a calendar, in the form in which a search reads it: a cache that lacks no other change adds it,
-- without reading the calendar. The functions booking_of and next_booking write it.
ALTER TABLE calendar_version ADD COLUMN last_booking bytea;
