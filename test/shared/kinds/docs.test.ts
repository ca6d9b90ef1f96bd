import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { FIELD_FORMS, KINDS, kindJsonSchema } from "../../../shared/kinds/catalogue.ts";
import { renderKindsMarkdown } from "../../../shared/kinds/markdown.ts";

describe("docs/kinds.md", () => {
  it("is what renderKindsMarkdown gives (the file's own head says how to write it anew)", () => {
    const file = readFileSync(fileURLToPath(import.meta.resolve("../../../docs/kinds.md")), "utf8");
    expect(file).toBe(renderKindsMarkdown());
  });

  it("has every kind in the overview and in a section", () => {
    const text = renderKindsMarkdown();
    for (const { kind, group } of KINDS) {
      expect(text).toContain(`\n### ${kind}\n`);
      expect(text).toContain(`\n| ${group} | ${kind} |`);
    }
  });
});

describe("kindJsonSchema", () => {
  it("describes tool.call.completed", () => {
    const form = { $ref: "#/$defs/CommittedField" };
    const label = { type: "string", maxLength: 512 };
    expect(kindJsonSchema("tool.call.completed")).toMatchObject({
      $id: "urn:runseal:kind:tool.call.completed",
      $defs: FIELD_FORMS,
      required: ["kind", "action", "outcome"],
      properties: {
        kind: { const: "tool.call.completed" },
        action: {
          type: "object",
          properties: {
            tool: { anyOf: [label, form] },
            tool_call_id: { anyOf: [label, { type: "null" }, form] },
            "imported.seq": { anyOf: [{ type: "integer", minimum: 0 }, { type: "null" }, form] },
          },
          required: ["tool"],
          additionalProperties: false,
        },
        outcome: {
          properties: { status: { enum: ["success", "failure", "denied", "unknown"] } },
          required: ["status"],
          additionalProperties: false,
        },
      },
    });
  });

  it("leaves opaque fields free, and extensions open", () => {
    const { properties } = kindJsonSchema("tool.call.started") as {
      properties: { action: { properties: object } };
    };
    expect(properties.action.properties).toHaveProperty("args", { description: "the arguments, as sent" });
    const extension = kindJsonSchema("ext.acme.thing") as { properties: { action: object } };
    expect(extension.properties.action).not.toHaveProperty("additionalProperties");
  });

  it("is made for every kind, with the forms where they are told to be", () => {
    for (const { kind, outcome, authorization } of KINDS) {
      const schema = kindJsonSchema(kind, "#/components/schemas/");
      const text = JSON.stringify(schema);
      expect(text).not.toContain("$defs");
      expect(text).not.toContain("multipleOf");
      expect(text).toContain("#/components/schemas/CommittedField");
      const { properties } = schema as { properties: object };
      expect(Object.hasOwn(properties, "outcome")).toBe(outcome !== undefined);
      expect(Object.hasOwn(properties, "authorization")).toBe(authorization);
    }
    expect(() => kindJsonSchema("no.such")).toThrow("there is no such kind");
  });

  it("is what a validator of JSON Schema takes for a nested field", () => {
    const { properties } = kindJsonSchema("policy.evaluated") as {
      properties: {
        action: { properties: { decision: { anyOf: [Parameters<typeof z.fromJSONSchema>[0]] } } };
      };
    };
    const decision = z.fromJSONSchema(properties.action.properties.decision.anyOf[0]);
    expect(decision.safeParse({ outcome: "deny", reason: null }).success).toBe(true);
    expect(decision.safeParse({ outcome: "maybe" }).success).toBe(false);
    expect(decision.safeParse({ outcome: "deny", other: 1 }).success).toBe(false);
  });
});
