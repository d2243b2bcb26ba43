-- Events, and the webhooks that send them: which endpoints get a practice's events, and what was sent.

-- `relayed`: whether the event was handed to the endpoints that subscribe to it. A flag and not a position: ids are assigned
-- before their transactions commit, so a position would skip a transaction that commits late.
CREATE TABLE outbox (
    practice_id bigint NOT NULL,
    event_id    bigint GENERATED ALWAYS AS IDENTITY,
    type        text NOT NULL,
    subject     jsonb NOT NULL,  -- ids and times only
    occurred_at timestamptz NOT NULL,
    relayed     boolean NOT NULL DEFAULT false,
    PRIMARY KEY (practice_id, event_id)
);
CREATE INDEX outbox_waiting ON outbox (practice_id, event_id) WHERE NOT relayed;

-- The trace of the write that an event tells of, which its webhooks continue. Written only where calls are traced.
CREATE TABLE event_trace (
    practice_id bigint NOT NULL,
    event_id    bigint NOT NULL,
    traceparent text NOT NULL,
    PRIMARY KEY (practice_id, event_id),
    FOREIGN KEY (practice_id, event_id) REFERENCES outbox ON DELETE CASCADE
);

CREATE TABLE webhook_endpoint (
    practice_id    bigint NOT NULL REFERENCES practice,
    endpoint_id    text NOT NULL,
    url            text NOT NULL,
    events         text[] NOT NULL,  -- types; none: all
    public_only    boolean NOT NULL,  -- added in the console: no private address, whatever the operator allows
    after_event_id bigint NOT NULL,  -- events before it was added are not sent
    paused_at      timestamptz,
    pause_reason   text CHECK (pause_reason IN ('operator', 'failing', 'gone')),
    failures       integer NOT NULL DEFAULT 0,  -- since the last success
    failing_since  timestamptz,
    rest_until     timestamptz,  -- back-off: nothing is sent before
    created_at     timestamptz NOT NULL,
    PRIMARY KEY (practice_id, endpoint_id),
    CHECK ((paused_at IS NULL) = (pause_reason IS NULL))
);

CREATE TABLE webhook_secret (
    practice_id bigint NOT NULL,
    endpoint_id text NOT NULL,
    number      integer NOT NULL,
    sealed      bytea NOT NULL,  -- encrypted under the operator's secret key
    created_at  timestamptz NOT NULL,
    retires_at  timestamptz,
    PRIMARY KEY (practice_id, endpoint_id, number),
    FOREIGN KEY (practice_id, endpoint_id) REFERENCES webhook_endpoint
);

-- One event for one endpoint. Deliveries of one subject to one endpoint are sent one after the other.
CREATE TABLE webhook_delivery (
    practice_id bigint NOT NULL,
    endpoint_id text NOT NULL,
    event_id    bigint NOT NULL,
    subject     text NOT NULL,
    state       text NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    attempts    integer NOT NULL DEFAULT 0,
    holder      text NOT NULL DEFAULT '',  -- of the lease; empty: none
    due_at      timestamptz NOT NULL,  -- when the lease ends, or the next attempt is due
    PRIMARY KEY (practice_id, endpoint_id, event_id),
    FOREIGN KEY (practice_id, endpoint_id) REFERENCES webhook_endpoint,
    FOREIGN KEY (practice_id, event_id) REFERENCES outbox
);
CREATE INDEX webhook_delivery_due ON webhook_delivery (practice_id, endpoint_id, due_at) WHERE state = 'pending';
-- With these two, deliveries are taken in their order, whatever the number that wait.
CREATE INDEX webhook_delivery_next ON webhook_delivery (practice_id, endpoint_id, attempts, due_at, event_id)
    WHERE state = 'pending';
CREATE INDEX webhook_delivery_held ON webhook_delivery (practice_id, endpoint_id, due_at)
    WHERE state = 'pending' AND holder <> '';
CREATE INDEX webhook_delivery_order ON webhook_delivery (practice_id, endpoint_id, subject, event_id)
    WHERE state = 'pending';
CREATE INDEX webhook_delivery_ended ON webhook_delivery (practice_id, due_at) WHERE state <> 'pending';
CREATE INDEX webhook_delivery_event ON webhook_delivery (practice_id, event_id);

CREATE TABLE webhook_attempt (
    practice_id  bigint NOT NULL,
    endpoint_id  text NOT NULL,
    event_id     bigint NOT NULL,
    attempt_id   bigint GENERATED ALWAYS AS IDENTITY,
    at           timestamptz NOT NULL,
    status       integer,  -- null: no answer
    milliseconds integer NOT NULL,
    failure      text,  -- null: success
    PRIMARY KEY (practice_id, endpoint_id, event_id, attempt_id),
    FOREIGN KEY (practice_id, endpoint_id, event_id) REFERENCES webhook_delivery
);

GRANT SELECT, INSERT, UPDATE, DELETE ON outbox, webhook_endpoint, webhook_secret, webhook_delivery TO frontdesk_service;
GRANT SELECT, INSERT, DELETE ON webhook_attempt TO frontdesk_service;
GRANT SELECT, INSERT ON event_trace TO frontdesk_service;
