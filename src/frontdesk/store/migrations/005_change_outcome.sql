-- What every function that changes the native calendar returns.

CREATE TYPE change_outcome AS (outcome text, reason text, result jsonb, subjects text[], event text, subject jsonb);
