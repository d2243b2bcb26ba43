-- How a staff member wants the calendar: density, colours, and the providers and visit types shown. Null: the defaults.
ALTER TABLE staff ADD COLUMN calendar jsonb;
