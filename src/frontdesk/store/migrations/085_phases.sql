-- Migrations of the phase after an upgrade tell nodes of an older release that they no longer fit.
ALTER TABLE migration ADD COLUMN IF NOT EXISTS phase text NOT NULL DEFAULT 'before' CHECK (phase IN ('before', 'after'));
