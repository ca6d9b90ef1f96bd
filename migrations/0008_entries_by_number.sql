-- `entries` as a table with a rowid. SQLite keeps at most about 1,000 bytes of a row in the tree of a table without one,
-- and puts the rest of each longer row on a page of its own, 4 KiB: most entries have more than that.
-- The number is the log's number and the sequence number, so that the primary key takes no tree beside the table.

CREATE TABLE entries_by_number (
  entry       INTEGER PRIMARY KEY,          -- log << 32 | seq
  log         INTEGER GENERATED ALWAYS AS (entry >> 32) VIRTUAL,
  seq         INTEGER GENERATED ALWAYS AS (entry & 4294967295) VIRTUAL,
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
  salts       TEXT                          -- their salts, JSON by section
);

INSERT INTO entries_by_number
  (entry, pos, tenant, hash, leaf, recorded_at, id, kind, session, run, step, call, tool, status, content, salts)
SELECT log << 32 | seq, pos, tenant, hash, leaf, recorded_at, id, kind, session, run, step, call, tool, status, content, salts
FROM entries ORDER BY log, seq;

DROP TABLE entries;
ALTER TABLE entries_by_number RENAME TO entries;
CREATE UNIQUE INDEX entries_by_id ON entries (log, id);
CREATE INDEX entries_by_arrival ON entries (tenant, pos, kind);
