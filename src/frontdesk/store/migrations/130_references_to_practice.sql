-- Each booking checked four times that its practice exists, and each check locked the practice's row: with bookings at the
-- same time, PostgreSQL had to write down who shares the lock. Rows of practices are never deleted, and the service may not.
ALTER TABLE intent DROP CONSTRAINT intent_practice_id_fkey;
ALTER TABLE audit_record DROP CONSTRAINT audit_record_practice_id_fkey;
ALTER TABLE outbox DROP CONSTRAINT outbox_practice_id_fkey;
