/**
 * A rules policy in the form of agentrt-proxy's configuration: the proxy's names, approvals and identity, so that a run
 * that a proxy recorded compares (docs/recheck.md).
 *
 * @module
 */
import { type JsonValue, jsonText, parseJsonValue } from "../json/value.ts";
import type { Sha256 } from "./hash.ts";
import type { Decision } from "./model.ts";
import { INTERRUPTED_SIDE_EFFECT } from "./model.ts";
import { type Policy, type PolicyAnswer, type PolicyRequest, plainDecision } from "./policy.ts";
import { proxyOutcomes, proxyPolicyId } from "./rules-identity.ts";
import { fixedText, type ProxyRules } from "./rules-schema.ts";

interface Tool {
  readonly server: string;
  /** The server's own name of it. */
  readonly remote: string;
  readonly sideEffect: string;
  readonly outcome: string | null;
  readonly fixed: string | null;
}

export class ProxyPolicy implements Policy {
  readonly id: string;
  readonly readsView = false as const;
  readonly #byClass: ReadonlyMap<string, string>;
  readonly #tools = new Map<string, Tool>();

  constructor(parsed: ProxyRules, crypto: Sha256) {
    this.id = proxyPolicyId(parsed, crypto);
    this.#byClass = proxyOutcomes(parsed);
    for (const [index, server] of parsed.json.servers.entries()) {
      for (const [remote, rule] of Object.entries(server.rules)) {
        // Serving refuses two tools of one name; here the first one stands, as for a proxy that never started.
        const name =
          rule.rename === undefined || rule.rename === "" ? `${server.name}_${remote}` : rule.rename;
        if (this.#tools.has(name)) continue;
        this.#tools.set(name, {
          server: server.name,
          remote,
          sideEffect: rule.side_effect,
          outcome: rule.outcome ?? null,
          fixed: fixedText(parsed.tree, "servers", index, "rules", remote, "fixed"),
        });
      }
    }
  }

  decide(request: PolicyRequest): PolicyAnswer {
    return this.#decide(request, null);
  }

  decideAgain(request: PolicyRequest, _view: unknown, recorded: Decision): PolicyAnswer {
    return this.#decide(request, recorded);
  }

  #decide(request: PolicyRequest, recorded: Decision | null): PolicyAnswer {
    const tool = this.#tools.get(request.tool);
    if (tool === undefined)
      return plainDecision("deny", `tool ${JSON.stringify(request.tool)} is not offered`);
    const { outcome, reason } = this.#outcome(request.tool, tool);
    if (outcome === "deny") return plainDecision(outcome, reason);
    if (recorded?.outcome === "require_approval" && recorded.kind === INTERRUPTED_SIDE_EFFECT) {
      return interruption(request, tool, recorded);
    }
    if (outcome !== "require_approval") return plainDecision(outcome, reason);
    const asked = recorded?.outcome === "require_approval" ? membersOf(recorded.presentation) : null;
    const question =
      asked?.get("question") ??
      `May the model call ${tool.remote} on server ${tool.server} with these arguments?`;
    const capability = capabilityMembers(request, tool);
    return ask(
      tool.sideEffect,
      reason,
      capability,
      new Map([...capability, ["question", question], ["reason", reason]]),
    );
  }

  #outcome(name: string, tool: Tool): { readonly outcome: string; readonly reason: string } {
    if (tool.outcome !== null) {
      return { outcome: tool.outcome, reason: `tool ${name} is ${tool.outcome} by the operator's rule` };
    }
    const outcome = this.#byClass.get(tool.sideEffect) ?? "deny";
    return { outcome, reason: `side effect ${tool.sideEffect} is ${outcome} by policy` };
  }
}

type Members = Map<string, JsonValue>;

function ask(kind: string, reason: string, capability: Members, presentation: Members): PolicyAnswer {
  const decision = { outcome: "require_approval", reason, kind };
  return {
    ok: true,
    decision: { ...decision, capability: jsonText(capability), presentation: jsonText(presentation) },
  };
}

function capabilityMembers(request: PolicyRequest, tool: Tool): Members {
  const members: Members = new Map<string, JsonValue>([
    ["server", tool.server],
    ["tool", tool.remote],
    ["name", request.tool],
    ["side_effect", tool.sideEffect],
    ["args", parseJsonValue(request.canonicalArgs)],
  ]);
  if (tool.fixed !== null) members.set("fixed", parseJsonValue(tool.fixed));
  return members;
}

/** The re-run of an attempt whose outcome is unknown: asked for whatever the policy says short of a denial. */
function interruption(request: PolicyRequest, tool: Tool, recorded: Decision): PolicyAnswer {
  const capability = capabilityMembers(request, tool);
  const interrupted = membersOf(recorded.capability)?.get("interrupted");
  if (interrupted !== undefined) capability.set("interrupted", interrupted);
  const presentation: Members = new Map(capability);
  const shown = membersOf(recorded.presentation);
  for (const name of ["question", "reason", "notice"]) {
    const value = shown?.get(name);
    if (value !== undefined) presentation.set(name, value);
  }
  return ask(INTERRUPTED_SIDE_EFFECT, recorded.reason, capability, presentation);
}

function membersOf(text: string | null): Members | null {
  const value = text === null ? null : parseJsonValue(text);
  return value instanceof Map ? value : null;
}
