-- formerly: c82b4029bddc33d07a3c8ff36e02e1b349accc117e3a6b5a3d24f47f24802a73
-- Sandbox practices can ask for a write whose outcome is unknown: it has executed, and its result is held back until a
-- resend asks for it without the simulation.

ALTER TABLE intent ADD COLUMN withheld jsonb CHECK (withheld IS NULL OR state = 'executing');
