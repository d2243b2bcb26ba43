-- Housekeeping deletes by the start of the minute. Without the index it reads every row again for each batch.
CREATE INDEX token_failure_started ON token_failure (started_at);
