import { describe, expect, it } from "vitest";
import { KINDS, kindSpec } from "../../../shared/kinds/catalogue.ts";
import { extensionPrefix } from "../../../shared/kinds/extension.ts";
import { SYSTEM_MAPPINGS } from "../../../shared/kinds/mapping.ts";
import { COMMON_ACTION, COMMON_OUTCOME } from "../../../shared/kinds/sections.ts";
import type { SectionSpec } from "../../../shared/kinds/types.ts";

/** The kinds of the design, section 5. */
const DESIGN: Readonly<Record<string, string>> = {
  run:
    "run.created run.queued run.claimed run.started run.resumed run.completed run.failed run.cancelled run.timeout " +
    "run.status session.started session.ended agent.spawned context.summarized message.delta message.completed " +
    "state.updated action.requested steering.injected steering.dropped",
  "step and policy":
    "step.started step.decided step.interrupted step.failed policy.evaluated limit.exceeded loop.detected",
  "model and HTTP": "model.dispatched model.completed model.failed http.request http.response",
  tool:
    "tool.call.started tool.call.completed mcp.resource.read mcp.prompt.get mcp.elicitation mcp.sampling server.started " +
    "server.stopped",
  approval: "approval.requested approval.granted approval.denied approval.expired",
  authority: "capability.created capability.revoked capability.changed",
  code: "code.installed code.loaded",
  "host calls":
    "file.read file.write file.delete net.connect net.bind net.accept process.spawn host.run host.loss host.gap " +
    "host.admitted",
  "admin and security": "security.violation admin.request config.reloaded",
};

function own(section: SectionSpec | undefined, common: Readonly<Record<string, unknown>>): string {
  const fields = section?.fields.filter(({ name }) => !Object.hasOwn(common, name)) ?? [];
  return fields
    .map(({ name, optional }) => name + (optional ? "?" : ""))
    .sort()
    .join(" ");
}

/** Own fields of action and outcome, as the design's second table writes them. */
const CORE: Readonly<Record<string, readonly [string, string | null]>> = {
  "run.created": ["authorization? goal? limits? tools?", null],
  "tool.call.started": ["args spec_hash? tool tool_call_id?", null],
  "tool.call.completed": ["tool tool_call_id?", "result?"],
  "policy.evaluated": ["args decision policy_id? spec_hash? tool view?", null],
  "approval.requested": ["approval_id capability expires_at? hash kind presentation reason?", null],
  "approval.granted": ["approval_id by? note? request_entry? scope? via?", null],
  "approval.denied": ["approval_id by? note? request_entry? scope? via?", null],
  "approval.expired": ["approval_id by? note? request_entry? scope? via?", null],
  "http.request": [
    "body_hash body_len headers_hash host injected_secrets? method path_hash port redirect_hop sequence",
    null,
  ],
  "http.response": [
    "request_entry? sequence",
    "body_hash? body_len complete http_status? provider_request_ids?",
  ],
};

describe("the catalogue", () => {
  it("has the kinds of the design, in their groups, and the service's own", () => {
    const groups = new Map<string, string[]>();
    for (const { group, kind } of KINDS) groups.set(group, [...(groups.get(group) ?? []), kind]);
    const service = groups.get("service") ?? [];
    groups.delete("service");
    const expected = new Map(
      Object.entries(DESIGN).map(([group, kinds]) => [group, kinds.split(" ").sort()]),
    );
    expect(new Map([...groups].map(([group, kinds]) => [group, kinds.sort()]))).toEqual(expected);
    const families = new Set(service.map((kind) => kind.split(".")[0]));
    expect(families).toEqual(
      new Set([
        "key",
        "apikey",
        "limits",
        "extension",
        "policy",
        "retention",
        "disclosure",
        "erasure",
        "log",
      ]),
    );
    expect(service).toContain("erasure.done");
  });

  it("lets the service alone write its own kinds", () => {
    for (const { group, writer } of KINDS) expect(writer).toBe(group === "service" ? "service" : "client");
  });

  it("names each kind once, and finds it", () => {
    expect(new Set(KINDS.map(({ kind }) => kind)).size).toBe(KINDS.length);
    for (const spec of KINDS) expect(kindSpec(spec.kind)).toBe(spec);
    for (const kind of ["run.creatd", "", "run", "ext", "constructor", "__proto__", "RUN.CREATED"]) {
      expect(kindSpec(kind)).toBeUndefined();
    }
  });

  for (const [kind, [action, outcome]] of Object.entries(CORE)) {
    it(`gives ${kind} the fields of the design`, () => {
      const spec = kindSpec(kind);
      expect(own(spec?.action, COMMON_ACTION)).toBe(action);
      expect(spec?.outcome === undefined ? null : own(spec.outcome, COMMON_OUTCOME)).toBe(outcome);
      expect(spec?.outcomeRequired).toBe(outcome !== null);
    });
  }

  it("accepts extra and the imported fields in every action, error and details in every outcome", () => {
    for (const { action, outcome } of KINDS) {
      for (const name of ["extra", "imported.system", "imported.seq", "imported.hash", "imported.bytes"]) {
        expect(action.byName.get(name)?.optional).toBe(true);
      }
      if (outcome !== undefined)
        expect(["error", "details"].every((name) => outcome.byName.has(name))).toBe(true);
    }
  });

  it("describes every kind and field, and keeps tags out of the fields", () => {
    for (const { description, action, outcome } of KINDS) {
      expect(description).toMatch(/^[A-Z].*\.$/);
      for (const field of [...action.fields, ...(outcome?.fields ?? [])]) {
        expect(field.name).toMatch(/^[a-z0-9_.]{1,64}$/);
        expect(field.description).not.toBe("");
      }
      expect(outcome?.byName.has("status") ?? false).toBe(false);
    }
  });
});

describe("extensions", () => {
  it("are ext.<prefix>.<name>", () => {
    for (const [kind, prefix] of [
      ["ext.acme.thing", "acme"],
      ["ext.a1_-.Deep.er-name_2", "a1_-"],
      [`ext.acme.${"x".repeat(119)}`, "acme"],
    ] as const) {
      expect(extensionPrefix(kind)).toBe(prefix);
      expect(kindSpec(kind)).toMatchObject({ kind, group: "yours", writer: "client", authorization: true });
    }
    for (const kind of [
      "ext.acme",
      "ext.acme.",
      "ext..x",
      "ext.Acme.x",
      "ext.1acme.x",
      "ext.acme.x..y",
      "ext.acme.x y",
      "ext.acme.x.",
      "ext.acme.é",
      "ext.acme.x\n",
      "xext.acme.x",
      `ext.${"a".repeat(33)}.x`,
      `ext.acme.${"x".repeat(120)}`,
    ]) {
      expect(extensionPrefix(kind)).toBeNull();
      expect(kindSpec(kind)).toBeUndefined();
    }
  });
});

describe("the mapping of the seed systems", () => {
  it("covers their events, each once, with kinds that exist", () => {
    const counts = SYSTEM_MAPPINGS.map(({ system, mappings }) => [system, mappings.length]);
    expect(counts).toEqual([
      ["agentrt", 19],
      ["LangBot", 14],
      ["Astrid", 40],
    ]);
    for (const { mappings } of SYSTEM_MAPPINGS) {
      expect(new Set(mappings.map(({ from }) => from)).size).toBe(mappings.length);
      for (const { to } of mappings) {
        expect(to.length).toBeGreaterThan(0);
        for (const kind of to) expect(kindSpec(kind)?.writer).toBe("client");
      }
    }
  });

  it("leaves room for Astrid's authorization and outcome, but where ours is a pre-commit or a decision", () => {
    const astrid = SYSTEM_MAPPINGS.find(({ system }) => system === "Astrid");
    for (const kind of new Set(astrid?.mappings.flatMap(({ to }) => to))) {
      const spec = kindSpec(kind);
      expect([kind, spec?.authorization]).toEqual([kind, true]);
      const without = /^(http\.request|approval\.)/.test(kind);
      expect([kind, spec?.outcome === undefined]).toEqual([kind, without]);
    }
  });
});
