import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { nativeCrypto } from "../../native/crypto.ts";
import { formatVkey, witnessKey } from "../../shared/note/vkey.ts";
import {
  cosignatureLine,
  headOf,
  headOfHeads,
  serviceLogOf,
  tenantLine,
  tenantLogOf,
} from "../shared/verify/heads-of.ts";
import {
  signerOf,
  TestLog as TestBundleLog,
  TestTenant as TestBundleTenant,
} from "../shared/verify/test-tenant.ts";
import type { TestTenant } from "./support.ts";
import { call, entries, newTenant } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
});

interface Report {
  verdict: string;
  checked: number;
  break?: { seq: number; verdict: string; expected: string | null; found: string | null; detail: string };
  kept_head?: { matches: boolean };
  issues: { seq: number; code: string }[];
  next?: number;
  pinned?: boolean;
  not_checked?: string[];
  freshness?: { witnessed: { witness: string; size: number | null }[] };
}

const log = (name: string) => `/v1/principals/${name}`;
const verify = async (name: string, query = "") =>
  (await call(tenant.key, "GET", `${log(name)}/verify${query}`)).body as unknown as Report;

async function filled(name: string, count = 6): Promise<void> {
  await call(tenant.key, "POST", `${log(name)}/entries`, entries(count));
  await call(tenant.key, "GET", `${log(name)}/entries?limit=1`);
}

const rows = (name: string) =>
  `log = (SELECT log FROM logs WHERE name = '${name}' AND tenant = '${tenant.id}')`;
const sql = (text: string) => env.DB.prepare(text).run();

describe("verification of what is stored", () => {
  it("finds an untouched log intact, and its kept head", async () => {
    await filled("intact", 300);
    const { body: head } = await call(tenant.key, "GET", `${log("intact")}/head`);
    const report = await verify("intact", `?head=${head.seq}:${head.hash}`);
    expect(report).toMatchObject({
      verdict: "intact",
      checked: 300,
      kept_head: { matches: true },
      issues: [],
    });
  });

  it("walks a part of a log, and refuses a range that is none", async () => {
    await filled("part", 10);
    expect(await verify("part", "?from=4&to=7")).toMatchObject({ verdict: "intact", checked: 4 });
    expect((await call(tenant.key, "GET", `${log("part")}/verify?from=7&to=4`)).status).toBe(400);
    expect(
      (await call(tenant.key, "GET", `${log("part")}/verify?from=4&head=2:${"ab".repeat(32)}`)).status,
    ).toBe(400);
    expect(await verify("part", "?from=99")).toMatchObject({ verdict: "intact", checked: 0 });
  });

  const tampering: [string, string, { seq: number; verdict: string }][] = [
    [
      "a leaf",
      "UPDATE entries SET leaf = (SELECT leaf FROM entries e2 WHERE e2.log = entries.log AND e2.seq = 5) WHERE %L AND seq = 3",
      { seq: 3, verdict: "altered" },
    ],
    [
      "a hash",
      `UPDATE entries SET hash = '${"00".repeat(32)}' WHERE %L AND seq = 3`,
      { seq: 3, verdict: "altered" },
    ],
    [
      "a value",
      "UPDATE entries SET content = replace(content, 'read_file', 'send_file') WHERE %L AND seq = 3",
      { seq: 3, verdict: "altered" },
    ],
    [
      "an index column",
      "UPDATE entries SET kind = 'run.created' WHERE %L AND seq = 3",
      { seq: 3, verdict: "altered" },
    ],
    [
      "the tool column",
      "UPDATE entries SET tool = 'other' WHERE %L AND seq = 3",
      { seq: 3, verdict: "altered" },
    ],
    ["a deleted row", "DELETE FROM entries WHERE %L AND seq = 3", { seq: 4, verdict: "missing" }],
    ["deleted last rows", "DELETE FROM entries WHERE %L AND seq > 4", { seq: 5, verdict: "truncated" }],
    [
      "bytes that are no leaf",
      "UPDATE entries SET leaf = '!!' WHERE %L AND seq = 3",
      { seq: 3, verdict: "altered" },
    ],
  ];
  it.each(tampering)("names the place where D1 was changed: %s", async (name, statement, expected) => {
    const principal = `t-${name.replaceAll(" ", "-")}`;
    await filled(principal);
    await sql(statement.replaceAll("%L", rows(principal)));
    const report = await verify(principal);
    expect(report.verdict).toBe("broken");
    expect(report.break).toMatchObject(expected);
    expect(report.break?.detail).toBeTypeOf("string");
  });

  it("says that a kept head is of another history, or was not reached", async () => {
    await filled("kept");
    const other = await verify("kept", `?head=3:${"ab".repeat(32)}`);
    expect(other).toMatchObject({
      verdict: "broken",
      break: { seq: 3, verdict: "fork" },
      kept_head: { matches: false },
    });
    const beyond = await verify("kept", `?head=9:${"ab".repeat(32)}`);
    expect(beyond).toMatchObject({ verdict: "broken", break: { seq: 9, verdict: "truncated" } });
  });
});

describe("bundles", () => {
  const upload = async (text: string, query = "") =>
    (await call(tenant.key, "POST", `/v1/verify${query}`, text, { "content-type": "application/x-ndjson" }))
      .body as unknown as Report;
  const lines = async (name: string, query = "") =>
    (await call(tenant.key, "GET", `${log(name)}/export${query}`)).text.trimEnd().split("\n");

  it("an exported bundle verifies, pinned and not", async () => {
    await filled("bundle", 20);
    const text = (await lines("bundle")).join("\n");
    expect(await upload(text, `?registry=${tenant.registryId}`)).toMatchObject({
      verdict: "intact",
      pinned: true,
      checked: 20,
    });
    expect(await upload(text)).toMatchObject({ verdict: "intact", pinned: false });
    expect(await upload(text, `?registry=${"ab".repeat(32)}`)).toMatchObject({ verdict: "broken" });
  });

  it("a partial export holds the other leaves as hashes, and says so", async () => {
    await filled("partial", 20);
    const report = await upload((await lines("partial", "?from=5&to=9&content=false")).join("\n"));
    expect(report).toMatchObject({ verdict: "intact", checked: 5 });
    expect(report.not_checked?.join()).toContain("15 leaves");
  });

  it("any line dropped, doubled or swapped is found", async () => {
    await filled("lines", 6);
    const good = await lines("lines");
    for (let i = 1; i < good.length; i++) {
      const dropped = good.filter((_, index) => index !== i);
      const isContent = good[i]?.startsWith('{"t":"content"');
      const report = await upload(dropped.join("\n"));
      if (isContent) expect(report.not_checked?.join()).toContain("values of");
      else expect([i, report.verdict]).toEqual([i, "broken"]);
      const doubled = [...good.slice(0, i + 1), ...good.slice(i)];
      if (!isContent) expect([i, (await upload(doubled.join("\n"))).verdict]).toEqual([i, "broken"]);
    }
  });

  it("with cosignatures show what the witnesses saw that are named, and no others", async () => {
    const own = new TestBundleTenant("cosigned");
    const made = new TestBundleLog(own).fill(5);
    const heads = tenantLogOf(own);
    const listed = heads.list([headOf(made)]);
    const service = serviceLogOf(nativeCrypto);
    const at = service.list([headOfHeads(heads)]);
    const names = ["w.example/w", "v.example/v"];
    const signers = names.map((name) => ({ name, signer: signerOf(name), time: 1_800_000_000n }));
    const [w = "", v = ""] = signers.map(({ name, signer }) =>
      formatVkey(witnessKey(nativeCrypto, name, signer.publicKey)),
    );
    const bundle = [
      ...made.lines(),
      tenantLine(heads, listed, made, 5),
      cosignatureLine(service, at, heads, heads.size, signers),
    ].join("\n");
    const seenBy = async (list: string) => {
      const report = await upload(bundle, `?witnesses=${encodeURIComponent(list)}`);
      expect([list, report.verdict, report.issues]).toEqual([list, "intact", []]);
      return [
        report.freshness?.witnessed.map(({ witness, size }) => [witness, size]),
        report.not_checked?.join(),
      ];
    };
    const unknown = (count: number) =>
      expect.stringContaining(`${count} cosignatures: the keys of their witnesses`);
    expect(await seenBy("")).toEqual([[], unknown(2)]);
    expect(await seenBy(`# mine\n${w}\n\n${w}\n`)).toEqual([[[names[0], 5]], unknown(1)]);
    expect((await seenBy(`${w}\n${v}`))[0]).toEqual(names.map((name) => [name, 5]));
    for (const [list, detail] of [
      ["w.example", "line 1: not <name>"],
      [`${w}\n${service.vkey}`, "line 2: not the key of a witness"],
    ] as const) {
      const path = `/v1/verify?witnesses=${encodeURIComponent(list)}`;
      const answer = await call(tenant.key, "POST", path, bundle);
      expect([answer.status, answer.body.pointer]).toEqual([400, "?witnesses"]);
      expect(answer.body.detail).toContain(detail);
    }
    const bare = await call(tenant.key, "POST", `/v1/verify?witnesses=${w}`, bundle);
    expect([bare.status, bare.body.pointer]).toEqual([400, "?witnesses"]);
    const long = await call(tenant.key, "POST", `/v1/verify?witnesses=${"x".repeat(8193)}`, bundle);
    expect([long.status, long.body.pointer]).toEqual([400, "?witnesses"]);
  });

  it("what is no bundle is reported, never thrown", async () => {
    expect(await upload("")).toMatchObject({ verdict: "broken", break: { verdict: "malformed" } });
    expect(await upload("{}")).toMatchObject({ verdict: "broken" });
    expect(await upload('{"runseal":"bundle.v2"}')).toMatchObject({ verdict: "unsupported" });
    const good = await lines("lines");
    expect(await upload([...good, '{"t":"novelty"}'].join("\n"))).toMatchObject({ verdict: "unsupported" });
  });
});
