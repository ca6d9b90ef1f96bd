-- The tenant's re-check jobs, for listing them. Each is a Durable Object; a row may lag behind it.

CREATE TABLE rechecks (
  n           INTEGER PRIMARY KEY,          -- order of the list
  tenant      TEXT NOT NULL,
  id          TEXT NOT NULL,                -- 16 bytes of hex
  principals  TEXT NOT NULL,                -- JSON list of the names that it may read; null: every one
  policy      TEXT NOT NULL,                -- JSON {engine, policy_id, hash, name, version}
  status      TEXT NOT NULL,
  created_at  TEXT NOT NULL,
  finished_at TEXT,
  report_hash TEXT
);
CREATE UNIQUE INDEX rechecks_by_id ON rechecks (tenant, id);
CREATE INDEX rechecks_by_tenant ON rechecks (tenant, n);
CREATE INDEX rechecks_unfinished ON rechecks (tenant) WHERE finished_at IS NULL;
