/**
 * Capabilities and code: what a token permits from its grant to its revocation, and that code runs as it was installed.
 *
 * @module
 */
import type { EntryView } from "../entry/view.ts";
import { quote } from "../json/chars.ts";
import { BoundedMap } from "./bounded-map.ts";
import { missingOf, textOf, valueAt } from "./fields.ts";
import { type EntryRef, type FindingList, refOf } from "./finding.ts";

const MAX_TOKENS = 16_384;
const MAX_CODE = 16_384;
/** Uses of tokens whose grant is not on record yet. */
const MAX_EARLY_USES = 4096;

/** The second half of an act: what it has to be allowed by, its first half was. */
const COMPLETIONS = new Set(["tool.call.completed", "http.response", "model.completed", "model.failed"]);

/** Whether the entry is an act of its own, and one that was not refused. */
export function isAct(entry: EntryView): boolean {
  return !COMPLETIONS.has(entry.kind) && entry.outcome?.status !== "denied";
}

/** Whether what the entry records took effect. */
function tookEffect({ outcome }: EntryView): boolean {
  return outcome === null || outcome.status === "success" || outcome.status === "unknown";
}

interface Token {
  readonly state: "granted" | "revoked";
  readonly entry: EntryRef;
}

export class CapabilityCheck {
  readonly #list: FindingList;
  readonly #wholeLog: boolean;
  /** By the canonical text of the token's name. */
  readonly #tokens: BoundedMap<string, Token>;
  readonly #early = new Map<string, EntryRef[]>();
  #earlyUses = 0;

  constructor(list: FindingList, wholeLog: boolean) {
    this.#list = list;
    this.#wholeLog = wholeLog;
    this.#tokens = new BoundedMap(MAX_TOKENS, () => list.limit(`capabilities beyond ${MAX_TOKENS}`));
  }

  /** `isOwn`: the entry is one of the run. */
  add(entry: EntryView, isOwn: boolean): void {
    if (isOwn && entry.authorization?.type === "capability" && isAct(entry)) this.#use(entry);
    if (!entry.kind.startsWith("capability.") || !tookEffect(entry)) return;
    if (entry.kind === "capability.changed") {
      for (const token of namesIn(entry, "granted")) this.#granted(token, entry);
      for (const token of namesIn(entry, "revoked")) this.#revoked(token, entry);
      return;
    }
    const missing = missingOf(entry.action, "token_id");
    if (missing !== null) this.#list.notChecked(refOf(entry), "action.token_id", missing);
    const token = textOf(entry.action, "token_id");
    if (token === undefined) return;
    if (entry.kind === "capability.created") this.#granted(token, entry);
    if (entry.kind === "capability.revoked") this.#revoked(token, entry);
  }

  #granted(token: string, entry: EntryView): void {
    const grant = refOf(entry);
    this.#tokens.set(token, { state: "granted", entry: grant });
    const early = this.#early.get(token);
    if (early === undefined) return;
    for (const use of early) this.#list.add("capability_used_before_grant", [use, grant]);
    this.#early.delete(token);
    this.#earlyUses -= early.length;
  }

  #revoked(token: string, entry: EntryView): void {
    this.#tokens.set(token, { state: "revoked", entry: refOf(entry) });
  }

  #use(entry: EntryView): void {
    const fields = entry.authorization?.fields ?? new Map();
    const missing = missingOf(fields, "token_id");
    if (missing !== null) this.#list.notChecked(refOf(entry), "authorization.token_id", missing);
    const token = textOf(fields, "token_id");
    if (token === undefined) return;
    const known = this.#tokens.get(token);
    const use = refOf(entry);
    if (known?.state === "revoked") this.#list.add("capability_used_after_revocation", [known.entry, use]);
    if (known !== undefined) return;
    if (this.#earlyUses >= MAX_EARLY_USES) {
      this.#list.limit(`uses of capabilities without a grant, beyond ${MAX_EARLY_USES}`);
      return;
    }
    this.#earlyUses += 1;
    const uses = this.#early.get(token);
    if (uses === undefined) this.#early.set(token, [use]);
    else uses.push(use);
  }

  finish(): void {
    for (const uses of this.#early.values()) {
      if (this.#wholeLog) for (const use of uses) this.#list.add("capability_not_granted", [use]);
      else this.#list.note("capabilities were used whose grants are not among the entries that were read");
    }
  }
}

/** The labels of a list, each as canonical text. */
function namesIn(entry: EntryView, field: string): string[] {
  const names = valueAt(entry.action, field);
  return Array.isArray(names) ? names.flatMap((name) => (typeof name === "string" ? [quote(name)] : [])) : [];
}

interface Installation {
  readonly entry: EntryRef;
  readonly code: string | undefined;
  readonly manifest: string | undefined;
}

export class CodeCheck {
  readonly #list: FindingList;
  readonly #wholeLog: boolean;
  readonly #installed: BoundedMap<string, Installation>;

  constructor(list: FindingList, wholeLog: boolean) {
    this.#list = list;
    this.#wholeLog = wholeLog;
    this.#installed = new BoundedMap(MAX_CODE, () => list.limit(`installed code beyond ${MAX_CODE}`));
  }

  add(entry: EntryView, isOwn: boolean): void {
    const isInstall = entry.kind === "code.installed";
    if (!isInstall && !(isOwn && entry.kind === "code.loaded")) return;
    if (!tookEffect(entry)) return;
    for (const field of ["code_id", "version", "code_hash", "manifest_hash"]) {
      const missing = missingOf(entry.action, field);
      if (missing !== null) this.#list.notChecked(refOf(entry), `action.${field}`, missing);
    }
    const id = textOf(entry.action, "code_id");
    if (id === undefined) return;
    const version = textOf(entry.action, "version");
    const here: Installation = {
      entry: refOf(entry),
      code: textOf(entry.action, "code_hash"),
      manifest: textOf(entry.action, "manifest_hash"),
    };
    const exact = version === undefined ? undefined : `${id}${version}`;
    if (isInstall) {
      this.#installed.set(id, here);
      if (exact !== undefined) this.#installed.set(exact, here);
      return;
    }
    // Versions may be installed side by side; else the last installation counts.
    const install = (exact === undefined ? undefined : this.#installed.get(exact)) ?? this.#installed.get(id);
    if (install === undefined) {
      if (this.#wholeLog) this.#list.add("code_not_installed", [here.entry]);
      else this.#list.note("code was loaded whose installation is not among the entries that were read");
    } else if (differ(install.code, here.code) || differ(install.manifest, here.manifest)) {
      this.#list.add("code_hash_differs", [install.entry, here.entry]);
    }
  }
}

/** A hash that one side does not give is no other hash. */
function differ(installed: string | undefined, loaded: string | undefined): boolean {
  return installed !== undefined && loaded !== undefined && installed !== loaded;
}
