-- Two versions of a name may have one content: what the system log records as a version is always put back as that one,
-- also where the content was given another number while D1 had lost it. `policies` then shows it under both.

DROP INDEX policies_by_hash;
CREATE INDEX policies_by_hash ON policies (tenant, name, hash);
