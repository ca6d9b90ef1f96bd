import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareDecimals, decimalOf, doubleHolds, hasUnheldNumber } from "../../../shared/recheck/decimal.ts";
import { PolicyRequest } from "../../../shared/recheck/policy.ts";
import { policyValue, requestValue, viewValue } from "../../../shared/recheck/values.ts";
import { fixtureRun, policyOf, recheck, specText, toolSpec } from "./support.ts";

describe("numbers that a double holds", () => {
  it.each([
    ["0", true],
    ["-0", true],
    ["0.1", true],
    ["1.0", true],
    ["1e3", true],
    ["1E+400", false],
    ["9007199254740992", true],
    ["9007199254740993", false],
    ["-9007199254740993", false],
    ["1152921504606846976", true],
    ["1152921504606846977", false],
    ["12345678901234567890", false],
    ["123456789012345678901234567890", false],
    ["3.141592653589793", true],
    ["3.141592653589793238462643383279", false],
    ["0.10000000000000000000", true],
    ["1e-400", false],
    ["0e-400", true],
    ["1e22", true],
    ["5e-324", true],
  ])("%s: %s", (literal, holds) => {
    expect(doubleHolds(literal)).toBe(holds);
    expect(hasUnheldNumber(`{"a":[${literal}]}`)).toBe(!holds);
  });

  it("are looked for outside of strings", () => {
    expect(hasUnheldNumber('{"9007199254740993":"9007199254740993 \\" 9007199254740993","e":1}')).toBe(false);
    expect(hasUnheldNumber('{"a":"\\\\","b":9007199254740993}')).toBe(true);
  });

  it("are all those that a double prints", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) =>
        doubleHolds(JSON.stringify(value)),
      ),
    );
  });

  it("are ordered as doubles are, and as integers are", () => {
    const finite = fc.double({ noNaN: true, noDefaultInfinity: true });
    const order = (a: string, b: string) => Math.sign(compareDecimals(decimalOf(a), decimalOf(b)));
    fc.assert(
      fc.property(
        finite,
        finite,
        (a, b) => order(JSON.stringify(a), JSON.stringify(b)) === (a < b ? -1 : a > b ? 1 : 0),
      ),
    );
    fc.assert(
      fc.property(fc.bigInt(), fc.bigInt(), (a, b) => order(`${a}`, `${b}`) === (a < b ? -1 : a > b ? 1 : 0)),
    );
  });
});

describe("values for policies", () => {
  it("keep what a double can't hold as its text, and __proto__ as a key", () => {
    const value = policyValue(
      '{"a":[1.0,9007199254740993],"__proto__":{"x":1},"s":"9007199254740993"}',
    ) as Record<string, unknown>;
    expect(Object.keys(value).sort()).toEqual(["__proto__", "a", "s"]);
    expect(value.a).toEqual([1, "9007199254740993"]);
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  it("have the request in agentrt's form, in PolicyJSON", () => {
    const spec = toolSpec(specText("t", "read_only", '{"description":"a < b"}'));
    const request = new PolicyRequest("r", "s", "t", spec, '{"a":"\\u0026\\u2028"}');
    expect(request.args).toBe('{"a":"&\u2028"}');
    expect(request.inputSchema).toBe('{"description":"a < b"}');
    expect(JSON.parse(JSON.stringify(requestValue(request)))).toEqual({
      run_id: "r",
      step_id: "s",
      spec: {
        name: "t",
        description: "t",
        input_schema: { description: "a < b" },
        side_effect: "read_only",
        timeout: 2_000_000_000,
        terminal: false,
      },
      args: { a: "&\u2028" },
    });
  });

  it("have the view: the run, the steps and the approvals, null where there are none", () => {
    const views: unknown[] = [];
    recheck(
      fixtureRun(),
      policyOf((_request, view) => {
        views.push(JSON.parse(JSON.stringify(viewValue(view))));
        return { ok: false, error: "" };
      }),
    );
    expect(views[0]).toEqual({
      run: {
        ...{ id: "id-01", goal: "publish the notes", status: "RUNNING", step_count: 1 },
        limits: { loop_threshold: 3, max_consecutive_tool_failures: 3, max_steps: 50 },
        ...{ created_at: "2026-10-01T09:00:01Z", started_at: "2026-10-01T09:00:01Z" },
        ...{
          model_calls: 0,
          input_tokens: 0,
          output_tokens: 0,
          cached_input_tokens: 0,
          estimated_cost_micros: 0,
          active_ms: 0,
        },
      },
      steps: null,
      approvals: null,
    });
    const resumed = views[3] as { steps: unknown[]; approvals: unknown[] };
    expect(resumed.steps[0]).toMatchObject({
      ...{
        id: "id-02",
        index: 0,
        status: "done",
        decision: { kind: "tool_call", tool: "read", args: { n: 1 } },
      },
      ...{
        policy: { outcome: "allow" },
        observation: { kind: "tool_result", content: { n: 1 } },
        policy_id: "default/v1",
      },
    });
    expect(resumed.approvals[0]).toMatchObject({
      id: "id-05",
      step_id: "id-04",
      status: "approved",
      decided_by: "op",
      note: "fine",
      decided_at: "2026-10-01T09:00:16Z",
    });
  });
});
