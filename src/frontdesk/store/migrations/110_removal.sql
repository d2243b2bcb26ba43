-- Operators remove clients; audit records keep their ids.
GRANT DELETE ON client TO frontdesk_service;
