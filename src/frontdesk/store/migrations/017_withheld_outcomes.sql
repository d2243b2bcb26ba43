-- Sandbox practices can ask for a write whose outcome is unknown: it has executed, and its result is held back until a
-- resend asks for it without the simulation.

ALTER TABLE intent ADD COLUMN withheld jsonb CHECK (withheld IS NULL OR state = 'executing');
