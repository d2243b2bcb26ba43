-- How the console writes times and dates for the practice.
ALTER TABLE practice
    ADD COLUMN time_format text NOT NULL DEFAULT '24h',
    ADD COLUMN date_format text NOT NULL DEFAULT 'dayFirst';
