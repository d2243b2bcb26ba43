-- formerly: 898aac444a4c235852e3376d8be5e0c151150ffb9ae626fc30ea2eb477c3aa87
-- Indexes of the searches over all practices.

CREATE INDEX practice_with_webhooks ON practice (practice_id) WHERE has_webhooks;
CREATE INDEX webhook_delivery_event ON webhook_delivery (practice_id, event_id);
