-- What D1 answers queries from. It is filled from the logs' outboxes, idempotently, and can be rebuilt from them.
-- docs/storage.md describes every column.

CREATE TABLE tenants (
  tenant      TEXT PRIMARY KEY,             -- 16 bytes of hex
  name        TEXT NOT NULL,
  registry_id TEXT NOT NULL,                -- hash of the genesis record
  created_at  TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE registry_records (
  tenant     TEXT NOT NULL,
  epoch      INTEGER NOT NULL,
  record     TEXT NOT NULL,                 -- base64 of the record's bytes
  signatures TEXT NOT NULL,                 -- JSON [{key, signature}...], hex
  PRIMARY KEY (tenant, epoch)
) WITHOUT ROWID;

-- One row a log. `last_seq` and `last_hash` move in the same batch as the entries, conditional on their old value,
-- so that a database that went backwards is noticed.
CREATE TABLE logs (
  log        INTEGER PRIMARY KEY,           -- short number of the log in this database
  log_id     TEXT NOT NULL UNIQUE,
  tenant     TEXT NOT NULL,
  principal  TEXT NOT NULL,
  generation INTEGER NOT NULL,
  name       TEXT NOT NULL,                 -- the principal's name
  last_seq   INTEGER NOT NULL DEFAULT 0,
  last_hash  TEXT NOT NULL
);
CREATE INDEX logs_by_tenant ON logs (tenant, name);

-- The arrival counter of a tenant: `entries.pos` is the tenant-wide order that cursors hold on to.
CREATE TABLE arrivals (
  tenant TEXT PRIMARY KEY,
  next   INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE entries (
  log         INTEGER NOT NULL,
  seq         INTEGER NOT NULL,
  pos         INTEGER NOT NULL,             -- tenant-wide arrival order
  tenant      TEXT NOT NULL,
  hash        TEXT NOT NULL,                -- leaf hash
  leaf        TEXT NOT NULL,                -- base64
  recorded_at INTEGER NOT NULL,             -- nanoseconds since the epoch
  id          TEXT NOT NULL,
  kind        TEXT NOT NULL,
  session     TEXT,
  run         TEXT,
  step        TEXT,
  call        TEXT,
  tool        TEXT,                         -- action.tool, where it is a string that was sent as a value
  status      TEXT,                         -- outcome.status
  content     TEXT,                         -- the values, JSON by section; null once erased
  salts       TEXT,                         -- their salts, JSON by section
  PRIMARY KEY (log, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX entries_by_id ON entries (log, id);
CREATE INDEX entries_by_arrival ON entries (tenant, pos, kind);

-- A run's span within its log: where its entries lie, so that no index by run is needed.
CREATE TABLE runs (
  log       INTEGER NOT NULL,
  run       TEXT NOT NULL,
  first_seq INTEGER NOT NULL,
  last_seq  INTEGER NOT NULL,
  entries   INTEGER NOT NULL,
  PRIMARY KEY (log, run)
) WITHOUT ROWID;

CREATE TABLE tool_specs (
  tenant     TEXT NOT NULL,
  hash       TEXT NOT NULL,                 -- SHA-256 of the canonical text
  spec       TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (tenant, hash)
) WITHOUT ROWID;

CREATE TABLE policies (
  tenant     TEXT NOT NULL,
  name       TEXT NOT NULL,
  version    INTEGER NOT NULL,
  policy_id  TEXT NOT NULL,                 -- identity of the content
  engine     TEXT NOT NULL,
  source     TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (tenant, name, version)
) WITHOUT ROWID;
