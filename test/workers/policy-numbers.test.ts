/**
 * Which version a content is: what the system log records, whatever D1 lost, and whenever it lost it.
 */
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { canonicalJson } from "../../shared/json/canonical.ts";
import { COPIES_STEP } from "../../workers/logs/restore-copies.ts";
import { clearIndex } from "../durable-objects/index-copy.ts";
import { recoverStopped } from "../durable-objects/stopped-log.ts";
import { CEDAR, lose, problemOf, RULES, rebuild, rowsOf, STRICT, step } from "./policies-support.ts";
import type { Answer, TestTenant } from "./support.ts";
import { call, newTenant } from "./support.ts";

const bounds = { ...COPIES_STEP };
let tenant: TestTenant;
beforeEach(async () => {
  tenant = await newTenant();
  vi.spyOn(console, "log").mockImplementation(() => {});
});
afterEach(() => {
  vi.restoreAllMocks();
  Object.assign(COPIES_STEP, bounds);
});

const numbered = (n: number) => ({ cedar: `permit(principal, action, resource); // ${n}` });
const put = (body: unknown, query = ""): Promise<Answer> =>
  call(tenant.key, "PUT", `/v1/policies/team${query}`, body);
const get = (query = ""): Promise<Answer> => call(tenant.key, "GET", `/v1/policies/team${query}`);
const copyOf = (version: number) => `t/${tenant.id}/policies/team/${version}`;

/** Puts the policy until it is stored. */
async function persist(body: unknown): Promise<Answer> {
  for (let i = 0; ; i++) {
    const answer = await put(body);
    if (answer.status < 300) return answer;
    expect([answer.status, i < 20]).toEqual([503, true]);
  }
}

/** Each version that the log records, with its content's hash. */
async function recorded(): Promise<[number, string][]> {
  const { body } = await call(
    tenant.key,
    "GET",
    "/v1/principals/$system/entries?kind=policy.stored&limit=1000",
  );
  const entries = body.entries as unknown as { action: { version: number; hash: string } }[];
  return entries.map(({ action: { version, hash } }) => [version, hash]);
}

describe("a content that the log records", () => {
  it("is its version while D1 is filled again", async () => {
    for (let i = 1; i <= 12; i++) await put(numbered(i));
    await lose();
    // R2 lists 1, 10, 11, 12 first.
    COPIES_STEP.objects = 4;
    await step({ tenant: tenant.id });
    expect((await persist(numbered(5))).body.version).toBe(5);
    expect(await rebuild(tenant)).toMatchObject({ refused: 0 });
    expect((await get("?version=5")).body.policy).toEqual(numbered(5));
    expect(await recorded()).toHaveLength(12);
  });

  it("is its version where its copy is gone, too, and may be demanded to be", async () => {
    const [, second] = [await put(RULES), await put(STRICT), await put(CEDAR)];
    await env.MIRROR.put(copyOf(2), "garbage");
    await lose();
    expect(await rebuild(tenant)).toMatchObject({ restored: 2, refused: 1 });
    expect(problemOf(await put(STRICT))).toEqual([503, "mirror-unavailable"]);
    await env.MIRROR.delete(copyOf(2));
    expect(problemOf(await put(STRICT, "?version=4"))).toEqual([409, "policy-exists"]);
    const again = await put(STRICT, "?version=2");
    expect([again.status, again.body]).toEqual([201, { ...second.body, created_at: again.body.created_at }]);
    await lose();
    expect(await rebuild(tenant)).toMatchObject({ restored: 3, refused: 0 });
    expect((await get("?version=2")).body).toMatchObject({ ...again.body, policy: STRICT });
  });

  it("is its version while another content waits for its number", async () => {
    for (const body of [RULES, STRICT]) await put(body);
    await lose();
    const open = env.DB.withSession.bind(env.DB) as (constraint?: string) => D1DatabaseSession;
    let state: "free" | "held" | "through" = "free";
    const until = async (wanted: typeof state): Promise<void> => {
      while (state !== wanted) await new Promise((resolve) => setTimeout(resolve, 1));
    };
    vi.spyOn(env.DB, "withSession").mockImplementation((constraint) => {
      const session = open(constraint);
      const prepare = session.prepare.bind(session);
      vi.spyOn(session, "prepare").mockImplementation((sql) => {
        const statement = prepare(sql);
        if (state !== "free" || !sql.startsWith("INSERT INTO policies")) return statement;
        const run = async (bound: D1PreparedStatement) => {
          const result = await bound.run();
          state = "held";
          await until("through");
          return result;
        };
        return { bind: (...args: unknown[]) => ({ run: () => run(statement.bind(...args)) }) } as never;
      });
      return session;
    });
    const third = put(CEDAR);
    await until("held");
    const again = await Promise.all([put(RULES), put(STRICT)]);
    state = "through";
    expect([(await third).body.version, ...again.map(({ body }) => body.version)]).toEqual([3, 1, 2]);
    expect(await rebuild(tenant)).toMatchObject({ restored: 0, refused: 0 });
    expect(await recorded()).toHaveLength(3);
  });

  it("is its version, and no other content is, after the system log was recovered", async () => {
    const first = await put(RULES);
    expect((await recoverStopped(tenant, "$system")).status).toBe(200);
    const second = await persist(STRICT);
    expect(second.body.version).toBe(2);
    // D1 has confirmed all that the log acknowledged.
    await recorded();
    await clearIndex();
    await lose();
    expect(problemOf(await put(CEDAR))).toEqual([503, "index-rebuilding"]);
    expect((await persist(CEDAR)).body.version).toBe(3);
    expect((await persist(RULES)).body).toEqual(first.body);
    expect(await rebuild(tenant)).toMatchObject({ refused: 0 });
  });
});

describe("what D1 says of the log", () => {
  it("is not believed against the log", async () => {
    await put(RULES);
    const second = await put(STRICT);
    await recorded();
    await env.DB.prepare(
      "UPDATE entries SET content = json_set(content, '$.action.hash', ?) WHERE tenant = ? AND kind = 'policy.stored' AND content ->> '$.action.version' = 1",
    )
      .bind(second.body.hash, tenant.id)
      .run();
    await env.DB.prepare("DELETE FROM policies WHERE tenant = ?").bind(tenant.id).run();
    await env.MIRROR.delete(copyOf(1));
    expect(problemOf(await put(STRICT))).toEqual([503, "index-conflict"]);
    expect([await env.MIRROR.head(copyOf(1)), await rowsOf([tenant])]).toEqual([null, []]);
  });
});

describe("a new content", () => {
  it("is recorded before it is answered as stored, where somebody else wrote it to D1", async () => {
    const first = await put(RULES);
    await env.DB.prepare(
      "INSERT INTO policies SELECT tenant, 'other', 4, policy_id, engine, source, created_at, hash, 1 FROM policies WHERE tenant = ?",
    )
      .bind(tenant.id)
      .run();
    const other = await call(tenant.key, "PUT", "/v1/policies/other", RULES);
    expect([other.status, other.body.version]).toEqual([200, 4]);
    expect(await recorded()).toEqual([
      [1, first.body.hash],
      [4, first.body.hash],
    ]);
  });

  it("is the next version after the last that is recorded, however many were lost with their copies", async () => {
    for (let i = 1; i <= 66; i++) await put(numbered(i));
    const { objects } = await env.MIRROR.list({ prefix: copyOf(0).slice(0, -1) });
    await env.MIRROR.delete(objects.map(({ key }) => key));
    await lose();
    const answer = await put(RULES);
    expect([answer.status, answer.body.version]).toEqual([201, 67]);
  });

  it("waits where D1 contradicts the log, for it may be recorded", async () => {
    await put(RULES);
    await recorded();
    await env.DB.prepare("UPDATE logs SET last_hash = ? WHERE tenant = ? AND name = '$system'")
      .bind("ab".repeat(32), tenant.id)
      .run();
    expect((await put(RULES)).status).toBe(200);
    await call(tenant.key, "POST", "/v1/api-keys", { name: "k", scopes: ["read"], principals: ["*"] });
    expect(problemOf(await put(STRICT))).toEqual([503, "index-conflict"]);
  });
});

interface Fault {
  /** The call fails, or its answer is lost. */
  readonly fails?: "before" | "after";
  /** What comes between: before the call, or after it. */
  readonly before?: () => Promise<unknown>;
  readonly after?: () => Promise<unknown>;
  /** A policy that is stored then, and stays so. */
  readonly stored?: unknown;
}

const empty = () => Promise.all([clearIndex(), lose()]);
const replaced = () => lose().then(() => persist(CEDAR));

/** What happens at the n-th call to D1 or R2 that a request makes. */
const FAULTS: Record<string, Fault> = {
  "a call fails": { fails: "before" },
  "an answer is lost": { fails: "after" },
  "the table is emptied": { before: lose },
  "D1 is emptied": { before: empty },
  "the table is emptied, and another content takes the number": { after: replaced, stored: CEDAR },
  "another content is stored": { before: () => persist(CEDAR), stored: CEDAR },
  "the same content is stored": { before: () => persist(STRICT), stored: STRICT },
};

/** Has the fault happen at the n-th call of a request; answers whether there was one. */
async function strikeAt(n: number, fault: Fault, request: () => Promise<Answer>): Promise<boolean> {
  let calls = 0;
  const guarded = async <T>(call: () => Promise<T>): Promise<T> => {
    calls += 1;
    if (calls !== n) return call();
    await fault.before?.();
    const result = fault.fails === "before" ? null : await call();
    await fault.after?.();
    if (fault.fails === undefined) return result as T;
    throw new Error("D1_ERROR: Network connection lost.");
  };
  const open = env.DB.withSession.bind(env.DB) as (constraint?: string) => D1DatabaseSession;
  const wrapped = (session: D1DatabaseSession): D1DatabaseSession => {
    const [prepare, batch] = [session.prepare.bind(session), session.batch.bind(session)];
    vi.spyOn(session, "prepare").mockImplementation((sql) => {
      const statement = prepare(sql);
      const bind = statement.bind.bind(statement);
      statement.bind = (...args: unknown[]) => {
        const bound = bind(...args);
        const [first, run] = [bound.first.bind(bound), bound.run.bind(bound)];
        bound.first = (() => guarded(() => first())) as never;
        bound.run = (() => guarded(() => run())) as never;
        return bound;
      };
      return statement;
    });
    // A statement of a batch has to be the platform's own.
    vi.spyOn(session, "batch").mockImplementation(((all: D1PreparedStatement[]) =>
      guarded(() => batch(all))) as never);
    return session;
  };
  let own = true;
  const spies = [
    // The request's own session alone: those of others are opened while the fault is at work.
    vi.spyOn(env.DB, "withSession").mockImplementation((constraint) => {
      const session = open(constraint);
      return own && calls < n ? wrapped(session) : session;
    }),
    ...(["get", "put"] as const).map((method) => {
      const original = (env.MIRROR[method] as (...args: unknown[]) => Promise<unknown>).bind(env.MIRROR);
      return vi
        .spyOn(env.MIRROR, method)
        .mockImplementation(((...args: unknown[]) =>
          String(args[0]).includes("/policies/") && calls < n
            ? guarded(() => original(...args))
            : original(...args)) as never);
    }),
  ];
  const answer = await request();
  own = false;
  for (const spy of spies) spy.mockRestore();
  expect([200, 201, 503]).toContain(answer.status);
  return calls >= n;
}

describe("nothing is lost, and no number means two contents, where a request is cut off at any place", () => {
  it.each(Object.entries(FAULTS))("%s", async (_, fault) => {
    for (let n = 1, struck = true; struck; n++) {
      tenant = await newTenant();
      await put(RULES);
      struck = await strikeAt(n, fault, () => put(STRICT));
      expect(struck || n > 7).toBe(true);
      if (struck && fault.stored !== undefined) {
        const source = canonicalJson(JSON.stringify(fault.stored));
        const shown = (await rowsOf([tenant])).filter((row) => row.stored === 1);
        expect(shown.map((row) => row.source)).toContain(source);
      }
      const answers = [await persist(RULES), await persist(STRICT), await persist(CEDAR)];
      const said = answers.map(({ body }) => [body.version, body.hash]);
      expect(said[0]?.[0]).toBe(1);
      expect(await rebuild(tenant)).toMatchObject({ refused: 0 });
      // Each number is one content's, each content has one, and each is shown as that.
      expect((await recorded()).map(String).sort()).toEqual(said.map(String).sort());
      const rows = await rowsOf([tenant]);
      expect(rows.map(({ version, hash }) => String([version, hash]))).toEqual(said.map(String).sort());
      expect(rows.every(({ stored }) => stored === 1)).toBe(true);
    }
  });
});
