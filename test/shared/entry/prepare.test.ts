import { describe, expect, it } from "vitest";
import { fromHex, toHex } from "../../../shared/bytes.ts";
import { encodeStatement, REPORTERS } from "../../../shared/entry/leaf.ts";
import { MAX_ENTRY_BYTES, MAX_FIELDS, MAX_VALUE_BYTES } from "../../../shared/entry/limits.ts";
import { parseRow } from "../../../shared/entry/row.ts";
import { viewOf } from "../../../shared/entry/to-view.ts";
import { KINDS } from "../../../shared/kinds/catalogue.ts";
import { formatTime } from "../../../shared/time.ts";
import { accepted, contextOf, membersOf, parse, refusal, seal } from "./ingest-support.ts";

const KIND = '"kind":"ext.test.any"';
const entry = (members: string) => `{${KIND},"action":{},${members}}`;
const ID_128 = "Az09._:-".repeat(16);
const HASH = "ab".repeat(32);

describe("an entry", () => {
  it("keeps each member that was sent, and is answered with the same members", () => {
    const sent = {
      id: "e-1",
      kind: "ext.test.any",
      session: "s",
      run: "r",
      step: "st",
      call: "c",
      occurred_at: "2026-01-02T03:04:05.000000006Z",
      reporter: "host",
      actor: { type: "agent", id: "bot", code_hash: HASH },
      action: { a: 1 },
      authorization: { type: "user", user_id: "u", message_id: "m" },
      outcome: { status: "success", result: null },
    };
    const { text } = seal(accepted(JSON.stringify(sent)));
    const answered = JSON.parse(text) as Record<string, unknown>;
    expect(answered).toMatchObject(sent);
    const added = ["seq", "hash", "leaf", "recorded_at", "submitter"];
    expect(Object.keys(answered).sort()).toEqual([...Object.keys(sent), ...added].sort());
    // What was answered, less what the log added, can be sent again and gives the same leaf body.
    const again = Object.fromEntries(Object.entries(answered).filter(([name]) => !added.includes(name)));
    const body = (text_: string) => toHex(accepted(text_).body);
    expect(body(JSON.stringify(again))).toBe(body(JSON.stringify(sent)));
  });

  it("has null where nothing was sent, and the same where null was", () => {
    const { leaf } = seal(accepted(entry('"id":"e"')));
    const nulls =
      '"session":null,"run":null,"step":null,"call":null,"occurred_at":null,"actor":null,"authorization":null,"outcome":null,"client":null';
    expect(seal(accepted(entry(`"id":"e",${nulls}`))).leaf).toEqual(leaf);
    expect(leaf).toMatchObject({
      session: null,
      run: null,
      step: null,
      call: null,
      occurredAt: null,
      actor: null,
      client: null,
    });
    expect(leaf).toMatchObject({ authorization: null, outcome: null, submitter: { reporter: "agent" } });
  });

  it("gets an id where it has none, and the default reporter", () => {
    const context = contextOf({ defaultReporter: "import" });
    expect(seal(accepted(`{${KIND},"action":{}}`, context)).leaf).toMatchObject({
      id: "made-1",
      submitter: { reporter: "import" },
    });
    for (const reporter of REPORTERS) {
      expect(seal(accepted(entry(`"reporter":"${reporter}"`))).leaf.submitter.reporter).toBe(reporter);
    }
  });

  it("keeps its time to the nanosecond, from the first to the last that fits", () => {
    for (const time of [0n, 1n, 2n ** 53n + 1n, 2n ** 64n - 1n]) {
      expect(seal(accepted(entry(`"occurred_at":"${formatTime(time)}"`))).leaf.occurredAt).toBe(time);
    }
  });

  it("has a salt of its own for each field, also for equal values", () => {
    const { leaf, salts } = seal(accepted(`{${KIND},"action":{"a":1,"b":1}}`));
    expect(new Set([...leaf.action.values()].map(toHex)).size).toBe(2);
    const parts = JSON.parse(salts) as { action: Record<string, string> };
    expect(new Set(Object.values(parts.action)).size).toBe(2);
  });

  it("gives the index its columns", () => {
    const sent = `{"kind":"tool.call.completed","id":"e","run":"r","session":"s","action":{"tool":"caf\\u00e9"},"outcome":{"status":"failure"}}`;
    expect(JSON.parse(parseRow(accepted(sent).row).columns)).toEqual({
      i: "e",
      k: "tool.call.completed",
      e: "s",
      r: "r",
      o: "caf\u00e9",
      u: "failure",
    });
  });

  const refused: readonly (readonly [string, string])[] = [
    ["{}", "missing-field /kind"],
    [`{${KIND}}`, "missing-field /action"],
    ['{"kind":1,"action":{}}', "invalid-field /kind"],
    ['{"kind":"run","action":{}}', "unknown-kind /kind"],
    ['{"kind":"constructor","action":{}}', "unknown-kind /kind"],
    ['{"kind":"erasure.done","action":{}}', "unknown-kind /kind"],
    [`{${KIND},"action":null}`, "invalid-field /action"],
    [`{${KIND},"action":[]}`, "invalid-field /action"],
    [entry('"id":null'), "invalid-field /id"],
    [entry('"id":""'), "invalid-field /id"],
    [entry(`"id":"${ID_128}x"`), "invalid-field /id"],
    [entry('"run":"a b"'), "invalid-field /run"],
    [entry('"session":7'), "invalid-field /session"],
    [entry('"step":"caf\u00e9"'), "invalid-field /step"],
    [entry('"call":{}'), "invalid-field /call"],
    [entry('"occurred_at":0'), "invalid-field /occurred_at"],
    [entry('"occurred_at":"2026-01-01"'), "invalid-field /occurred_at"],
    [entry('"occurred_at":"1969-12-31T23:59:59Z"'), "invalid-field /occurred_at"],
    [entry('"occurred_at":"2026-01-01T00:00:00.0000000001Z"'), "invalid-field /occurred_at"],
    [entry('"reporter":"nobody"'), "invalid-field /reporter"],
    [entry('"reporter":null'), "invalid-field /reporter"],
    [entry('"actor":{"type":"a"}'), "missing-field /actor/id"],
    [entry('"actor":{"id":"a"}'), "missing-field /actor/type"],
    [entry('"actor":{"type":"a","id":"b","x":1}'), "unknown-field /actor/x"],
    [entry('"actor":{"type":"a","id":"b","__proto__":1}'), "unknown-field /actor/__proto__"],
    [entry('"actor":{"type":"a","id":"b","code_hash":"ab"}'), "invalid-field /actor/code_hash"],
    [entry('"actor":"a"'), "invalid-field /actor"],
    [entry(`"client":{"key":"${HASH}"}`), "missing-field /client/signature"],
    [entry(`"client":{"signature":"${HASH}${HASH}"}`), "missing-field /client/key"],
    [entry(`"client":{"key":"${HASH}","signature":"${HASH}"}`), "invalid-field /client/signature"],
    [entry(`"client":{"key":"${HASH}","signature":"${HASH}${HASH}"}`), "unknown-client-key /client"],
    [entry('"outcome":{}'), "missing-field /outcome/status"],
    [entry('"outcome":{"status":"maybe"}'), "invalid-field /outcome/status"],
    [entry('"outcome":{"status":1}'), "invalid-field /outcome/status"],
    [entry('"authorization":{}'), "missing-field /authorization/type"],
    [entry('"authorization":{"type":"none"}'), "invalid-field /authorization/type"],
    [entry('"extra":1'), "unknown-field /extra"],
    [entry('"a/b~c":1'), "unknown-field /a~1b~0c"],
    [`{${KIND},"action":{"A":1}}`, "unknown-field /action/A"],
    [`{${KIND},"action":{"":1}}`, "unknown-field /action/"],
    [`{${KIND},"action":{"${"a".repeat(65)}":1}}`, `unknown-field /action/${"a".repeat(65)}`],
    ['{"kind":"run.started","action":{"typo":1}}', "unknown-field /action/typo"],
    ['{"kind":"run.started","action":{},"outcome":{"status":"success"}}', "unknown-field /outcome"],
    ['{"kind":"tool.call.started","action":{"tool":"t"}}', "missing-field /action/args"],
    ['{"kind":"tool.call.started","action":{"tool":1,"args":{}}}', "invalid-field /action/tool"],
  ];
  it.each(refused)("is refused: %s", (body, expected) => {
    expect(refusal(body)).toBe(expected);
  });

  it("never shows a submitted value in what it says", () => {
    const secret = "s3cr3t-value";
    let refusals = 0;
    for (const [body] of refused) {
      const swapped = body.replaceAll(/"(?:nobody|maybe|none|a b|2026[^"]*|run)"(?!:)/g, `"${secret} x"`);
      if (swapped === body) continue;
      refusals += 1;
      const [only] = parse(swapped).entries;
      expect(only?.ok).toBe(false);
      expect(JSON.stringify(only)).not.toContain(secret);
    }
    expect(refusals).toBeGreaterThan(5);
  });

  it("of a kind that the service writes is taken from the service", () => {
    const service = KINDS.filter(({ writer }) => writer === "service");
    expect(service.length).toBeGreaterThan(0);
    for (const { kind } of service)
      expect(refusal(`{"kind":"${kind}","action":{}}`)).toBe("unknown-kind /kind");
    expect(refusal('{"kind":"erasure.done","action":{}}', contextOf({ writer: "service" }))).not.toContain(
      "unknown-kind",
    );
  });

  it("with a client's signature is taken where that is good, over the statement of its leaf", () => {
    const client = `"client":{"key":"${HASH}","signature":"${HASH}${HASH}"}`;
    const statements: string[] = [];
    const context = contextOf({
      verifyClient: (body) => {
        statements.push(toHex(encodeStatement(new Uint8Array(32), body)));
        return body.client?.key[0] === 0xab;
      },
    });
    const { leaf } = seal(accepted(entry(`"id":"e",${client}`), context));
    expect(toHex(leaf.client?.key ?? new Uint8Array())).toBe(HASH);
    expect(statements).toEqual([toHex(encodeStatement(new Uint8Array(32), leaf))]);
    expect(refusal(entry(client), contextOf({ verifyClient: () => false }))).toBe(
      "unknown-client-key /client",
    );
  });
});

describe("the limits of an entry", () => {
  const fields = (count: number) => Array.from({ length: count }, (_, i) => `"f${i}":1`).join(",");

  it("are 128 fields over all its sections", () => {
    const both = (a: number, b: number) =>
      `{${KIND},"action":{${fields(a)}},"outcome":{"status":"success",${fields(b)}}}`;
    expect(seal(accepted(both(100, 28))).leaf.action.size).toBe(100);
    expect(refusal(both(100, 29))).toBe("too-many-fields /outcome");
    expect(refusal(`{${KIND},"action":{${fields(MAX_FIELDS + 1)}}}`)).toBe("too-many-fields /action");
  });

  it("are 1 MiB of canonical text a value, in UTF-8 bytes", () => {
    const value = (bytes: number) => `{${KIND},"action":{"a":"${"\u00e9".repeat((bytes - 2) / 2)}"}}`;
    expect(refusal(value(MAX_VALUE_BYTES))).toBe("accepted");
    expect(refusal(value(MAX_VALUE_BYTES + 2))).toBe("value-too-large /action/a");
    // Six bytes a character once it is canonical.
    const angle = (count: number) => `{${KIND},"action":{"a":"${"<".repeat(count)}"}}`;
    expect(refusal(angle(174_762))).toBe("accepted");
    expect(refusal(angle(174_763))).toBe("value-too-large /action/a");
  });

  it("are 1.5 MiB of values together", () => {
    const two = (bytes: number) =>
      `{${KIND},"action":{"a":"${"x".repeat(786_430)}","b":"${"x".repeat(bytes - 786_434)}"}}`;
    expect(refusal(two(MAX_ENTRY_BYTES))).toBe("accepted");
    expect(refusal(two(MAX_ENTRY_BYTES + 1))).toBe("entry-too-large ");
  });

  it("are never a leaf of 16 KiB: what may be in one is less", () => {
    const name = (i: number) => `${"n".repeat(61)}${String(i).padStart(3, "0")}`;
    const widest = `{"kind":"ext.${"a".repeat(32)}.${"Z".repeat(91)}","id":"${ID_128}","session":"${ID_128}","run":"${ID_128}","step":"${ID_128}","call":"${ID_128}",
      "actor":{"type":"${ID_128}","id":"${ID_128}","code_hash":"${HASH}"},"action":{${Array.from({ length: 128 }, (_, i) => `"${name(i)}":null`).join(",")}}}`;
    expect(refusal(widest)).toBe("accepted");
    expect(accepted(widest).body.length).toBeGreaterThan(13_000);
  });
});

describe("the view of an entry", () => {
  const prepared = accepted(
    `{${KIND},"id":"e","action":{"a":1.0,"b":{"$commitment":"${HASH}"}},"outcome":{"status":"success","result":"x"}}`,
  );
  const { leaf, values } = seal(prepared);

  it("has each field's text, or why there is none", () => {
    const view = viewOf(leaf, "00", values);
    expect([...view.action]).toEqual([
      ["a", { text: "1.0" }],
      ["b", { missing: "commitment-only" }],
    ]);
    expect(view.outcome).toEqual({ status: "success", fields: new Map([["result", { text: '"x"' }]]) });
  });

  it("says of every field that it was erased, once the content is gone", () => {
    const view = viewOf(leaf, "00", null);
    expect([...view.action.values()]).toEqual([{ missing: "erased" }, { missing: "erased" }]);
    expect(view.outcome?.fields.get("result")).toEqual({ missing: "erased" });
  });

  it("has the envelope as the leaf has it", () => {
    const actor = seal(accepted(entry(`"actor":{"type":"agent","id":"x","code_hash":"${HASH}"}`)));
    expect(viewOf(actor.leaf, "00", actor.values).actor).toEqual({ type: "agent", id: "x", code_hash: HASH });
    expect(fromHex(HASH)).toEqual(actor.leaf.actor?.codeHash);
    expect(membersOf(actor.text).get("actor")).toContain(HASH);
  });
});
