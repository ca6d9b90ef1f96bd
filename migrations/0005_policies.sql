-- Versions of policies: what was stored, by the hash that the system log has of it.
-- `stored` is 1 once the `policy.stored` entry is durable; a version is not there before.
ALTER TABLE policies ADD COLUMN hash TEXT NOT NULL DEFAULT '';
ALTER TABLE policies ADD COLUMN stored INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX policies_by_hash ON policies (tenant, name, hash);
