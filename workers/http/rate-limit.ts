/**
 * Counts what a limited key uses (docs/limits.md). A key without limits passes without a look at any state: nothing is
 * asked, nothing is awaited. One with limits draws on a lease from its tenant's directory, about one call a second and
 * isolate however much it sends.
 *
 * Headers: draft-ietf-httpapi-ratelimit-headers, `RateLimit-Policy` and `RateLimit` as Structured Fields lists.
 *
 * @module
 */
import type {
  Amount,
  LeaseOutcome,
  LimitState,
  Windows,
} from "../../durable-objects/tenant-directory/limits.ts";
import { DAY_MS, MINUTE_MS } from "../../durable-objects/tenant-directory/limits.ts";
import type { Env } from "../env.ts";
import type { Caller } from "./auth.ts";
import { Problem } from "./problem.ts";

/** How long an isolate keeps what it has not used, and how long it believes that a limit is reached. */
const LEASE_MS = 1000;
const MAX_BUDGETS = 1000;
const NOTHING: Amount = { entries: 0, bytes: 0 };

type Lease = LeaseOutcome & { readonly startedMs: number };

/** What was taken; to be given back as far as nothing came of it. */
export interface Charge {
  readonly headers: Readonly<Record<string, string>>;
  giveBack(amount: Amount): void;
}

/** One key's lease in this isolate. */
class Budget {
  #lease: Lease | null = null;
  #left: Amount = NOTHING;
  /** Used since the lease began. */
  #used: Amount = NOTHING;
  #leasing: Promise<void> | null = null;

  /** Takes the amount, or throws a 429 problem. */
  async take(env: Env, caller: Caller, need: Amount): Promise<Charge> {
    for (;;) {
      const lease = this.#current(Date.now());
      if (lease !== null && fits(need, this.#left)) return this.#charge(lease, need);
      if (lease?.refused != null) this.#refuse(lease, need);
      // One call at a time: those that wait for it look again at what it brought.
      this.#leasing ??= this.#renew(env, caller, need).finally(() => {
        this.#leasing = null;
      });
      await this.#leasing;
    }
  }

  /** Refuses where nothing at all is left, before the request is read. */
  refuseIfNothingLeft(): void {
    const lease = this.#current(Date.now());
    if (lease?.refused?.remaining === 0 && this.#left.entries === 0) throw problemOf(lease, lease.refused);
  }

  #current(nowMs: number): Lease | null {
    if (this.#lease === null) return null;
    const age = nowMs - this.#lease.startedMs;
    return age >= 0 && age < Math.min(LEASE_MS, this.#lease.minuteEndsInMs) ? this.#lease : null;
  }

  #charge(lease: Lease, need: Amount): Charge {
    this.#left = less(this.#left, need);
    this.#used = more(this.#used, need);
    const left = this.#left;
    return {
      headers: limitHeaders(lease, left),
      giveBack: (amount) => {
        const now = this.#lease;
        if (now === null) return;
        const back = {
          entries: now.minute === lease.minute ? amount.entries : 0,
          bytes: now.day === lease.day ? amount.bytes : 0,
        };
        this.#left = more(this.#left, back);
        this.#used = less(this.#used, back);
      },
    };
  }

  /** Throws where the refusal that the lease holds applies to this need, too. */
  #refuse(lease: Lease, need: Amount): void {
    const over = lease.states.find(({ what, remaining }) => need[what] > remaining + this.#left[what]);
    if (over !== undefined) throw problemOf(lease, over);
  }

  async #renew(env: Env, caller: Caller, need: Amount): Promise<void> {
    const before = this.#lease;
    const unused = before === null ? null : { ...this.#left, ...windowsOf(before) };
    const want = this.#wanted(before, need, Date.now());
    // Whatever comes of the call, this is given back once only.
    this.#left = NOTHING;
    let outcome: LeaseOutcome;
    try {
      const request = { keyId: caller.key.id, need, want, unused };
      outcome = await env.TENANT_DIRECTORY.getByName(caller.tenant.id).lease(request);
    } catch {
      throw new Problem("unavailable", { detail: "the limits could not be counted", retryAfter: 1 });
    }
    // What was given back meanwhile belongs to the windows of the lease before.
    const back = {
      entries: before?.minute === outcome.minute ? this.#left.entries : 0,
      bytes: before?.day === outcome.day ? this.#left.bytes : 0,
    };
    this.#lease = { ...outcome, startedMs: Date.now() };
    this.#left = more(back, outcome.granted);
    this.#used = NOTHING;
  }

  /** As much as the last second took, growing from what is needed now to at most twice the lease before. */
  #wanted(before: Lease | null, need: Amount, nowMs: number): Amount {
    if (before === null) return need;
    const seconds = Math.max(0.001, (nowMs - before.startedMs) / 1000);
    const wanted = (what: "entries" | "bytes"): number =>
      Math.max(
        need[what],
        Math.min(Math.ceil(this.#used[what] / seconds), 2 * before.granted[what] + need[what]),
      );
    return { entries: wanted("entries"), bytes: wanted("bytes") };
  }
}

const budgets = new Map<string, Budget>();

function budgetOf(caller: Caller): Budget {
  const name = `${caller.tenant.id}/${caller.key.id}`;
  let budget = budgets.get(name);
  if (budget === undefined) {
    if (budgets.size >= MAX_BUDGETS) budgets.clear();
    budget = new Budget();
    budgets.set(name, budget);
  }
  return budget;
}

/** Whether the caller's appends are counted. */
function isLimited({ limits }: Caller): boolean {
  if (limits === null || limits === undefined) return false;
  return [limits.tenant, limits.key].some(
    (one) => one !== null && (one.entriesPerMinute !== null || one.bytesPerDay !== null),
  );
}

/** Throws a 429 problem where the caller is known to have nothing left: before anything of the request is read. */
export function refuseExhausted(caller: Caller): void {
  if (isLimited(caller)) budgetOf(caller).refuseIfNothingLeft();
}

/**
 * Takes what a request is about to store; null for a caller without limits. Rejects with a 429 problem where that is
 * more than is left; then nothing is taken.
 */
export function takeBudget(env: Env, caller: Caller, need: Amount): Promise<Charge> | null {
  return isLimited(caller) ? budgetOf(caller).take(env, caller, need) : null;
}

/** The problem of a limit of principals that is reached. */
export function tooManyPrincipals(scope: "tenant" | "key"): Problem {
  const detail = `the ${scope} has as many principals as it may`;
  return new Problem("quota-exceeded", { detail, retryAfter: 3600 });
}

function problemOf(lease: Lease, state: LimitState): Problem {
  const { scope, what, limit } = state;
  const inMs = what === "entries" ? lease.minuteEndsInMs : lease.dayEndsInMs;
  const detail = `more than the ${scope}'s ${limit} ${what} a ${what === "entries" ? "minute" : "day"}`;
  const retryAfter = Math.max(1, Math.ceil((inMs - (Date.now() - lease.startedMs)) / 1000));
  const headers = limitHeaders(lease, NOTHING);
  return new Problem(what === "entries" ? "rate-limited" : "quota-exceeded", { detail, retryAfter, headers });
}

/** `r` is what this isolate knows to be left: its lease, and what was left for all when it leased. */
function limitHeaders(lease: Lease, left: Amount): Record<string, string> {
  if (lease.states.length === 0) return {};
  const elapsed = Date.now() - lease.startedMs;
  const policies = lease.states.map(({ scope, what, limit }) => {
    const unit = what === "entries" ? "entries" : "content-bytes";
    return `"${scope}-${what}";q=${limit};w=${(what === "entries" ? MINUTE_MS : DAY_MS) / 1000};qu="${unit}"`;
  });
  const states = lease.states.map(({ scope, what, remaining }) => {
    const endsInMs = (what === "entries" ? lease.minuteEndsInMs : lease.dayEndsInMs) - elapsed;
    return `"${scope}-${what}";r=${remaining + left[what]};t=${Math.max(0, Math.ceil(endsInMs / 1000))}`;
  });
  return { "ratelimit-policy": policies.join(", "), ratelimit: states.join(", ") };
}

function windowsOf({ minute, day }: Windows): Windows {
  return { minute, day };
}

function fits(need: Amount, left: Amount): boolean {
  return need.entries <= left.entries && need.bytes <= left.bytes;
}

function more(a: Amount, b: Amount): Amount {
  return { entries: a.entries + b.entries, bytes: a.bytes + b.bytes };
}

function less(a: Amount, b: Amount): Amount {
  return { entries: Math.max(0, a.entries - b.entries), bytes: Math.max(0, a.bytes - b.bytes) };
}
