/**
 * What a tenant and its keys may use, and what they have used: the one place where a limit is counted.
 *
 * A Worker does not ask here for each request. It leases a part of what is left, ahead of use, and counts that down in
 * memory; what it leases counts as used at once, so that all Workers together never pass a limit. What it did not use
 * it gives back with its next lease of the same window. Windows are the clock's: a minute, and a day of UTC. A lease
 * writes one row for each limited scope, an entry none.
 *
 * @module
 */
import type { Row } from "../tile-store/sql.ts";
import { firstRow } from "../tile-store/sql.ts";

/** Null: not limited. */
export interface Limits {
  readonly entriesPerMinute: number | null;
  /** Bytes of request bodies of which something was stored. */
  readonly bytesPerDay: number | null;
  readonly principals: number | null;
}

export const UNLIMITED: Limits = { entriesPerMinute: null, bytesPerDay: null, principals: null };

export function sameLimits(a: Limits, b: Limits): boolean {
  return (
    a.entriesPerMinute === b.entriesPerMinute &&
    a.bytesPerDay === b.bytesPerDay &&
    a.principals === b.principals
  );
}

export const SCOPES_OF_LIMITS = ["tenant", "key"] as const;
export type LimitScope = (typeof SCOPES_OF_LIMITS)[number];

/** The limits of a key and its tenant; a scope without any is null. */
export type CallerLimits = Readonly<Record<LimitScope, Limits | null>>;

export interface Amount {
  readonly entries: number;
  readonly bytes: number;
}

/** Which minute and day an amount was leased in: their numbers since the epoch. */
export interface Windows {
  readonly minute: number;
  readonly day: number;
}

export interface LeaseRequest {
  /** 16 bytes of hex. */
  readonly keyId: string;
  /** What must fit. */
  readonly need: Amount;
  /** What would be used in about a second, at least `need`. */
  readonly want: Amount;
  /** What is left of the lease before. */
  readonly unused: (Amount & Windows) | null;
}

/** One limit and what is left of it. */
export interface LimitState {
  readonly scope: LimitScope;
  readonly what: "entries" | "bytes";
  readonly limit: number;
  readonly remaining: number;
}

export type LeaseOutcome = Windows & {
  /** What was leased; all of nothing where `refused` is set. */
  readonly granted: Amount;
  readonly states: readonly LimitState[];
  /** The limit that does not hold what is needed. */
  readonly refused: LimitState | null;
  /** Milliseconds until the windows end. */
  readonly minuteEndsInMs: number;
  readonly dayEndsInMs: number;
};

export interface Usage {
  readonly entriesThisMinute: number;
  readonly bytesToday: number;
  readonly principals: number;
}

export const MINUTE_MS = 60_000;
export const DAY_MS = 86_400_000;
/** Part of what is left that one lease takes at most, beyond what is needed: nobody else is to go without. */
const SHARE = 4;
/** The tenant's own row; a key's goes by its id. */
const TENANT = "tenant";

const SCHEMA = `
CREATE TABLE IF NOT EXISTS limits (scope TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS usage (
  scope TEXT PRIMARY KEY, minute INTEGER NOT NULL, entries INTEGER NOT NULL, day INTEGER NOT NULL,
  bytes INTEGER NOT NULL, principals INTEGER NOT NULL) WITHOUT ROWID;
`;

interface Used extends Windows {
  readonly entries: number;
  readonly bytes: number;
  readonly principals: number;
}

export class LimitBook {
  readonly #sql: SqlStorage;
  /** Principals of the tenant but its own; counted when it is first asked for. */
  #principals: number | null = null;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(SCHEMA);
  }

  /** The limits of the tenant (`keyId` null) or of a key; null where there is none. */
  limits(keyId: string | null): Limits | null {
    const row = firstRow(this.#sql, "SELECT record FROM limits WHERE scope = ?", keyId ?? TENANT);
    return row === undefined ? null : (JSON.parse(String(row.record)) as Limits);
  }

  /** Both that hold for a key; null where neither does. */
  ofCaller(keyId: string): CallerLimits | null {
    const [tenant, key] = [this.limits(null), this.limits(keyId)];
    return tenant === null && key === null ? null : { tenant, key };
  }

  /** Sets limits, or takes them away. */
  set(keyId: string | null, limits: Limits | null): void {
    const scope = keyId ?? TENANT;
    if (limits === null || Object.values(limits).every((limit) => limit === null)) {
      this.#sql.exec("DELETE FROM limits WHERE scope = ?", scope);
      return;
    }
    this.#sql.exec(
      "INSERT INTO limits VALUES (?, ?) ON CONFLICT (scope) DO UPDATE SET record = excluded.record",
      scope,
      JSON.stringify(limits),
    );
  }

  usage(keyId: string | null, nowMs: number): Usage {
    const used = this.#used(keyId ?? TENANT, windowsAt(nowMs));
    const principals = keyId === null ? this.#countPrincipals() : used.principals;
    return { entriesThisMinute: used.entries, bytesToday: used.bytes, principals };
  }

  /** Leases from all limits of the key and its tenant, or from none. Must run inside a transaction. */
  lease(request: LeaseRequest, nowMs: number): LeaseOutcome {
    const windows = windowsAt(nowMs);
    const scopes = SCOPES_OF_LIMITS.flatMap((scope) => {
      const name = scope === "tenant" ? TENANT : request.keyId;
      const limits = this.limits(scope === "tenant" ? null : request.keyId);
      return limits === null ? [] : [{ scope, name, limits, used: this.#giveBack(name, request, windows) }];
    });
    const states = scopes.flatMap(({ scope, limits, used }) => statesOf(scope, limits, used));
    const refused = states.find(({ what, remaining }) => request.need[what] > remaining) ?? null;
    const granted = {
      entries: refused === null ? grant("entries", request, states) : 0,
      bytes: refused === null ? grant("bytes", request, states) : 0,
    };
    for (const { name, used } of scopes) {
      this.#write(name, {
        ...used,
        entries: used.entries + granted.entries,
        bytes: used.bytes + granted.bytes,
      });
    }
    return {
      ...windows,
      granted,
      states: states.map((state) => ({ ...state, remaining: state.remaining - granted[state.what] })),
      refused,
      minuteEndsInMs: (windows.minute + 1) * MINUTE_MS - nowMs,
      dayEndsInMs: (windows.day + 1) * DAY_MS - nowMs,
    };
  }

  /** The scope whose limit of principals is reached; null where one more may be made. */
  principalsRefusal(keyId: string): LimitScope | null {
    const [tenant, key] = [this.limits(null)?.principals ?? null, this.limits(keyId)?.principals ?? null];
    if (tenant !== null && this.#countPrincipals() >= tenant) return "tenant";
    if (key !== null && this.#used(keyId, { minute: 0, day: 0 }).principals >= key) return "key";
    return null;
  }

  /** Notes that a principal was made, by a key or by the service itself. Must run in the transaction that makes it. */
  principalMade(keyId: string | null): void {
    if (keyId === null) return;
    if (this.#principals !== null) this.#principals += 1;
    if ((this.limits(keyId)?.principals ?? null) === null) return;
    const row = firstRow(this.#sql, "SELECT * FROM usage WHERE scope = ?", keyId);
    const used = usedOf(row);
    this.#write(keyId, { ...used, principals: used.principals + 1 });
  }

  /** Principals are counted anew after a transaction that threw. */
  forgetCount(): void {
    this.#principals = null;
  }

  #countPrincipals(): number {
    const counted = firstRow(this.#sql, "SELECT count(*) AS n FROM principals WHERE name <> '$system'");
    this.#principals ??= Number(counted?.n ?? 0);
    return this.#principals;
  }

  /** What is used in these windows: what was used in others does not count. */
  #used(scope: string, { minute, day }: Windows): Used {
    const used = usedOf(firstRow(this.#sql, "SELECT * FROM usage WHERE scope = ?", scope));
    return {
      minute,
      day,
      entries: used.minute === minute ? used.entries : 0,
      bytes: used.day === day ? used.bytes : 0,
      principals: used.principals,
    };
  }

  /** The same, less what the lease before left over. */
  #giveBack(scope: string, { unused }: LeaseRequest, windows: Windows): Used {
    const used = this.#used(scope, windows);
    const entries = unused?.minute === windows.minute ? unused.entries : 0;
    const bytes = unused?.day === windows.day ? unused.bytes : 0;
    return { ...used, entries: Math.max(0, used.entries - entries), bytes: Math.max(0, used.bytes - bytes) };
  }

  #write(scope: string, used: Used): void {
    this.#sql.exec(
      `INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (scope) DO UPDATE SET minute = excluded.minute,
         entries = excluded.entries, day = excluded.day, bytes = excluded.bytes, principals = excluded.principals`,
      scope,
      used.minute,
      used.entries,
      used.day,
      used.bytes,
      used.principals,
    );
  }
}

function windowsAt(nowMs: number): Windows {
  return { minute: Math.floor(nowMs / MINUTE_MS), day: Math.floor(nowMs / DAY_MS) };
}

function usedOf(row: Row | undefined): Used {
  return {
    minute: Number(row?.minute ?? 0),
    entries: Number(row?.entries ?? 0),
    day: Number(row?.day ?? 0),
    bytes: Number(row?.bytes ?? 0),
    principals: Number(row?.principals ?? 0),
  };
}

function statesOf(scope: LimitScope, limits: Limits, used: Used): LimitState[] {
  const of = { entries: limits.entriesPerMinute, bytes: limits.bytesPerDay };
  return (["entries", "bytes"] as const).flatMap((what) => {
    const limit = of[what];
    return limit === null ? [] : [{ scope, what, limit, remaining: Math.max(0, limit - used[what]) }];
  });
}

/** What is needed, or what is wanted as far as it leaves enough for others. */
function grant(
  what: "entries" | "bytes",
  { need, want }: LeaseRequest,
  states: readonly LimitState[],
): number {
  const left = Math.min(...states.filter((state) => state.what === what).map(({ remaining }) => remaining));
  return Number.isFinite(left)
    ? Math.max(need[what], Math.min(want[what], Math.floor(left / SHARE)))
    : want[what];
}
