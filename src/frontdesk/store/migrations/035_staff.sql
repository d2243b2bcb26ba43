-- Staff of a practice were called operators, a word that belongs to those who run the service.

ALTER TABLE operator RENAME TO staff;
ALTER TABLE staff RENAME COLUMN operator_id TO staff_id;
ALTER INDEX operator_practice RENAME TO staff_practice;

ALTER TABLE operator_link RENAME TO staff_link;
ALTER TABLE staff_link RENAME COLUMN operator_id TO staff_id;
ALTER INDEX operator_link_operator RENAME TO staff_link_staff;
ALTER INDEX operator_link_expires RENAME TO staff_link_expires;

ALTER TABLE operator_session RENAME TO staff_session;
ALTER TABLE staff_session RENAME COLUMN operator_id TO staff_id;
ALTER INDEX operator_session_operator RENAME TO staff_session_staff;
ALTER INDEX operator_session_last_seen RENAME TO staff_session_last_seen;
