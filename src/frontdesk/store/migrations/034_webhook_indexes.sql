-- Indexes of the searches over all practices.

CREATE INDEX practice_with_webhooks ON practice (practice_id) WHERE has_webhooks;
CREATE INDEX webhook_delivery_event ON webhook_delivery (practice_id, event_id);
