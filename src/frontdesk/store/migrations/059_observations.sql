-- What workers have noticed of their surroundings, for `frontdesk doctor`: the latest of each kind.
CREATE TABLE observation (
    name    text PRIMARY KEY,
    detail  text NOT NULL,
    seen_at timestamptz NOT NULL
);
GRANT SELECT, INSERT, UPDATE ON observation TO frontdesk_service;
