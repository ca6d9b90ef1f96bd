-- The tenants whose heads answer without a key. The tenant's log of heads is the authority; this spares it from being
-- asked, or made, for every tenant id that somebody thinks of. A row that is lost turns the heads off.

CREATE TABLE public_heads (
  tenant TEXT PRIMARY KEY                   -- 16 bytes of hex
) WITHOUT ROWID;
