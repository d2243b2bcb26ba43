-- Each booking checked four times that its practice exists, and each check locked the practice's row: with bookings at the
-- same time, PostgreSQL had to write down who shares the lock. Row-level security lets nothing be written for a practice
-- that was not found before, and the row of a practice is never deleted: audit_head and the directory refer to it.
ALTER TABLE intent DROP CONSTRAINT intent_practice_id_fkey;
ALTER TABLE audit_record DROP CONSTRAINT audit_record_practice_id_fkey;
ALTER TABLE outbox DROP CONSTRAINT outbox_practice_id_fkey;
