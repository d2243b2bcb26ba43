-- formerly: d27e27d3b261858104aab7e620ab2811d4db306b755d850c9eea16def47afa64
-- What every function that changes the native calendar returns.

CREATE TYPE change_outcome AS (outcome text, reason text, result jsonb, subjects text[], event text, subject jsonb);
