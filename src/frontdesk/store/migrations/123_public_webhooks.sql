-- Webhook endpoints that were added in the console: messages to them go to public addresses only, whatever the operator
-- allows for those that were added on the command line.
CREATE TABLE webhook_public_endpoint (
    practice_id bigint NOT NULL,
    endpoint_id text NOT NULL,
    PRIMARY KEY (practice_id, endpoint_id),
    FOREIGN KEY (practice_id, endpoint_id) REFERENCES webhook_endpoint ON DELETE CASCADE
);
ALTER TABLE webhook_public_endpoint ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_public_endpoint FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON webhook_public_endpoint USING (practice_id = current_setting('frontdesk.practice_id')::bigint);
GRANT SELECT, INSERT ON webhook_public_endpoint TO frontdesk_service;
