-- Indexes with which deliveries are taken in their order, whatever the number that wait.

CREATE INDEX webhook_delivery_next ON webhook_delivery (practice_id, endpoint_id, attempts, due_at, event_id)
    WHERE state = 'pending';
CREATE INDEX webhook_delivery_held ON webhook_delivery (practice_id, endpoint_id, due_at)
    WHERE state = 'pending' AND holder <> '';
