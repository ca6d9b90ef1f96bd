/**
 * Verifies a bundle line by line, offline, trusting only what the caller pins: the registry id, or a checkpoint that
 * was kept elsewhere. Memory does not grow with the bundle.
 *
 *     const verifier = new BundleVerifier(crypto, { registryId });
 *     for await (const line of lines) verifier.line(line);
 *     const report = verifier.finish();
 *
 * @module
 */
import type { VerifyReport } from "../api/schemas.ts";
import type { BundleHeader, BundleLine, FieldLine } from "../bundle/format.ts";
import { bundleBytes, bundleHash, parseBundleHeader, parseBundleLine } from "../bundle/format.ts";
import { equalBytes, fromHex, toHex } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import type { Leaf } from "../entry/leaf.ts";
import { computeLogId, parseOrigin, tenantOrigin } from "../entry/log-id.ts";
import { RunsealError } from "../errors.ts";
import { RightEdge } from "../merkle/edge.ts";
import { RegistryChain } from "../registry/chain.ts";
import { checkCheckpoint } from "./checkpoint.ts";
import { alteredField, fieldCount } from "./content.ts";
import type { Issue } from "./issues.ts";
import { IssueList, verdictOf } from "./issues.ts";
import { LogWalker } from "./walk.ts";

/** `SEQ:HASH`, as `runseal head` prints it. */
export interface KeptHead {
  readonly seq: number;
  /** Hex. */
  readonly hash: string;
}

export interface BundleOptions {
  /** The tenant's registry id that the caller holds from elsewhere, hex. */
  readonly registryId?: string;
  /** A checkpoint that the caller kept: a signed note. */
  readonly checkpoint?: string;
  readonly keptHead?: KeptHead;
  /** Called now and then with the entries checked so far. */
  readonly onProgress?: (checked: number) => void;
  /** Who verifies, for the report. */
  readonly verifiedBy: string;
}

/** Entries between two calls of `onProgress`. */
const PROGRESS_EVERY = 10_000;

interface Opened {
  readonly header: BundleHeader;
  readonly registry: RegistryChain;
  /** Made when the first entry comes: the registry's lines are over then. */
  walker: LogWalker | null;
}

export class BundleVerifier {
  readonly #crypto: CryptoPort;
  readonly #options: BundleOptions;
  readonly #issues = new IssueList();
  readonly #edge: RightEdge;
  #opened: Opened | null = null;
  #checkpoint: string | null = null;
  #keptFound: Uint8Array | null = null;
  #keptRoot: { size: number; root: Uint8Array } | null = null;
  #keptRootAt: Uint8Array | null = null;
  #gap = false;
  #leaf: Leaf | null = null;
  #lastSeq = 0;
  #lastEpoch: number | null = null;
  #counts = { leaves: 0, fields: 0, openedFields: 0, hashes: 0, tenants: 0, cosignatures: 0 };
  #unreadable: RunsealError | null = null;

  constructor(crypto: CryptoPort, options: BundleOptions) {
    this.#crypto = crypto;
    this.#options = options;
    this.#edge = new RightEdge(crypto);
  }

  /** Takes the next line, without its line feed. An empty line is skipped. Nothing is thrown for a bad bundle. */
  line(text: string): void {
    if (this.#unreadable !== null || text.trim() === "") return;
    try {
      if (this.#opened === null) this.#open(parseBundleHeader(text));
      else this.#take(this.#opened, parseBundleLine(text));
    } catch (error) {
      if (!(error instanceof RunsealError)) throw error;
      this.#unreadable = error;
    }
  }

  #open(header: BundleHeader): void {
    this.#opened = { header, registry: new RegistryChain(this.#crypto), walker: null };
    if (this.#options.checkpoint !== undefined) {
      const [, size = "", root = ""] = this.#options.checkpoint.split("\n");
      if (/^(0|[1-9][0-9]*)$/.test(size)) this.#keptRoot = { size: Number(size), root: bundleBytes(root) };
    }
  }

  #take(opened: Opened, line: BundleLine): void {
    switch (line.t) {
      case "registry":
        if (opened.walker !== null) throw new RunsealError("malformed-bundle", "a registry record comes after the entries");
        this.#addRecord(opened, line);
        return;
      case "leaf": {
        const walker = this.#walker(opened);
        this.#counts.leaves += 1;
        this.#leaf = walker.add({ seq: line.seq, leaf: bundleBytes(line.leaf), recordedHash: bundleHash(line.hash) });
        this.#lastSeq = line.seq;
        if (this.#leaf !== null) {
          this.#counts.fields += fieldCount(this.#leaf);
          this.#lastEpoch = this.#leaf.epoch;
        }
        if (walker.checked % PROGRESS_EVERY === 0) this.#options.onProgress?.(walker.checked);
        return;
      }
      case "content":
      case "disclosure":
        this.#checkFields(line.seq, line.fields);
        return;
      case "hash":
        this.#counts.hashes += 1;
        this.#leaf = null;
        this.#lastSeq = line.seq;
        this.#walker(opened).withheld(line.seq, bundleHash(line.hash));
        return;
      case "checkpoint":
        if (this.#checkpoint !== null) throw new RunsealError("malformed-bundle", "the bundle has two checkpoints");
        this.#checkpoint = line.checkpoint;
        return;
      case "tenant":
        this.#counts.tenants += 1;
        return;
      case "cosignature":
        this.#counts.cosignatures += 1;
        return;
    }
  }

  #addRecord(opened: Opened, line: Extract<BundleLine, { t: "registry" }>): void {
    try {
      opened.registry.add({
        bytes: bundleBytes(line.record),
        signatures: line.signatures.map(({ key, signature }) => ({ key: fromHex(key), signature: fromHex(signature) })),
      });
    } catch (error) {
      if (!(error instanceof RunsealError)) throw error;
      const code = line.epoch === 0 ? "invalid-genesis" : "invalid-registry";
      this.#issues.add({ seq: 0, code, detail: error.message, expected: null, found: null });
    }
  }

  #walker(opened: Opened): LogWalker {
    if (opened.walker !== null) return opened.walker;
    const { header, registry } = opened;
    const name = parseOrigin(header.origin);
    if (registry.epoch < 0) throw new RunsealError("malformed-bundle", "the bundle has no registry record");
    const registryId = registry.registryId;
    if (toHex(registryId) !== header.registry_id) {
      this.#add("invalid-genesis", 0, "the genesis record does not give the registry id of line 1", header.registry_id, toHex(registryId));
    }
    if (registry.origin !== tenantOrigin(name.host, name.tenant)) {
      this.#add("log-id-mismatch", 0, "the origin is not one of the registry's tenant");
    }
    opened.walker = new LogWalker({
      crypto: this.#crypto,
      logId: computeLogId(this.#crypto, registryId, name.principal, name.generation),
      registry,
      issues: this.#issues,
      from: 1,
      onHash: (seq, hash) => this.#onHash(seq, hash),
    });
    return opened.walker;
  }

  #onHash(seq: number, hash: Uint8Array): void {
    if (seq !== this.#edge.size + 1) this.#gap = true;
    if (!this.#gap) {
      this.#edge.append(hash);
      if (this.#keptRoot?.size === this.#edge.size) this.#keptRootAt = this.#edge.root();
    }
    if (this.#options.keptHead?.seq === seq) this.#keptFound = hash;
  }

  #checkFields(seq: number, fields: readonly FieldLine[]): void {
    if (seq !== this.#lastSeq) throw new RunsealError("malformed-bundle", "content does not follow its leaf");
    if (this.#leaf === null) return;
    const altered = alteredField(
      this.#crypto,
      this.#leaf,
      fields.map(({ section, name, salt, text }) => ({ section, name, salt: fromHex(salt), text })),
    );
    this.#counts.openedFields += fields.length;
    if (altered !== null) {
      this.#add("altered-content", seq, `the value of ${altered} is not the one that the leaf commits to`);
    }
  }

  #add(code: Issue["code"], seq: number, detail: string, expected: string | null = null, found: string | null = null): void {
    this.#issues.add({ code, seq, detail, expected, found });
  }

  /** The report. Call once, after the last line. */
  finish(): VerifyReport {
    const opened = this.#opened;
    if (this.#unreadable !== null || opened === null) return this.#unreadableReport();
    let walker: LogWalker;
    try {
      walker = this.#walker(opened);
    } catch (error) {
      if (!(error instanceof RunsealError)) throw error;
      this.#unreadable = error;
      return this.#unreadableReport();
    }
    const head = this.#checkHead(opened, walker);
    const kept = this.#checkKeptHead();
    const pinned = this.#checkPins(opened);
    const { header } = opened;
    const first = this.#issues.first;
    return {
      verdict: this.#issues.verdict,
      from: header.from,
      to: header.to,
      checked: walker.checked,
      head,
      last: walker.last === null ? null : { seq: walker.last.seq, hash: toHex(walker.last.hash) },
      issues: this.#issues.all.map(({ seq, code, detail }) => ({ seq, code, detail })),
      ...(first === undefined ? {} : { break: breakOf(first) }),
      ...(kept === null ? {} : { kept_head: kept }),
      trusted: this.#trusted(pinned),
      not_checked: this.#notChecked(),
      pinned,
      verified_by: this.#options.verifiedBy,
    };
  }

  #checkHead(opened: Opened, walker: LogWalker): VerifyReport["head"] {
    if (this.#checkpoint === null) {
      this.#add("truncated", walker.next, "the bundle has no checkpoint: it was cut, or nothing was signed");
      return null;
    }
    const check = checkCheckpoint(this.#crypto, opened.registry, opened.header.origin, this.#checkpoint, this.#lastEpoch);
    if (!check.ok) {
      this.#add(check.code, walker.next - 1, check.detail);
      return null;
    }
    const { size, root } = check.checkpoint;
    const walked = walker.next - 1;
    if (walked < size) {
      this.#add("truncated", walked + 1, `the signed head has ${size} entries, the bundle ends at ${walked}`, String(size), String(walked));
    } else if (walked > size) {
      this.#add("forked-entry", size + 1, `the bundle has entries beyond the signed head of ${size}`, String(size), String(walked));
    } else if (!this.#gap && !equalBytes(this.#edge.root(), root)) {
      this.#add("root-mismatch", walked, "the leaves do not give the signed root", toHex(root), toHex(this.#edge.root()));
    }
    const { from, to } = opened.header;
    if (to > size || from > to + 1) this.#add("truncated", size, "the bundle's range is not inside its signed head");
    return { seq: size, size, root: toHex(root), key: toHex(check.key), checkpoint: this.#checkpoint };
  }

  #checkKeptHead(): VerifyReport["kept_head"] | null {
    const kept = this.#options.keptHead;
    if (kept === undefined) return null;
    const found = this.#keptFound === null ? null : toHex(this.#keptFound);
    const matches = found === kept.hash;
    if (found === null) {
      this.#add("truncated", kept.seq, `the kept head, entry ${kept.seq}, was not reached`, kept.hash, null);
    } else if (!matches) {
      this.#add("kept-head-mismatch", kept.seq, `entry ${kept.seq} is not the one whose hash was kept`, kept.hash, found);
    }
    return { seq: kept.seq, hash: kept.hash, found, matches };
  }

  /** Whether what the caller holds from elsewhere was there to compare with, and agrees. */
  #checkPins(opened: Opened): boolean {
    let pinned = false;
    const { registryId, checkpoint } = this.#options;
    if (registryId !== undefined) {
      pinned = true;
      const found = toHex(opened.registry.registryId);
      if (found !== registryId) {
        this.#add("invalid-genesis", 0, "the registry is not the pinned one", registryId, found);
      }
    }
    if (checkpoint !== undefined) {
      pinned = true;
      this.#checkKeptCheckpoint(opened, checkpoint);
    }
    return pinned;
  }

  #checkKeptCheckpoint(opened: Opened, note: string): void {
    const check = checkCheckpoint(this.#crypto, opened.registry, opened.header.origin, note, null);
    if (!check.ok) {
      this.#add(check.code, 0, `the kept checkpoint: ${check.detail}`);
      return;
    }
    const { size, root } = check.checkpoint;
    const found = size === 0 ? new RightEdge(this.#crypto).root() : this.#keptRootAt;
    if (found === null) {
      this.#add("truncated", size, `the kept checkpoint has ${size} entries, more than the bundle`, toHex(root), null);
    } else if (!equalBytes(found, root)) {
      this.#add("kept-head-mismatch", size, "the log is not an extension of the kept checkpoint", toHex(root), toHex(found));
    }
  }

  #trusted(pinned: boolean): string[] {
    const trusted: string[] = [];
    if (this.#options.registryId !== undefined) trusted.push("the pinned registry id");
    if (this.#options.checkpoint !== undefined) trusted.push("the kept checkpoint");
    if (this.#options.keptHead !== undefined) trusted.push("the kept head");
    if (!pinned) trusted.push("the registry inside the bundle: nothing was pinned");
    return trusted;
  }

  #notChecked(): string[] {
    const { leaves, hashes, fields, openedFields, tenants, cosignatures } = this.#counts;
    const out: string[] = [];
    if (hashes > 0) out.push(`${hashes} leaves of ${leaves + hashes}: only their hashes are in the bundle`);
    if (fields > openedFields) out.push(`${fields - openedFields} values of ${fields}: they are committed to, not disclosed`);
    if (tenants > 0) out.push("the lines of the tenant's log");
    if (cosignatures > 0) out.push("the cosignatures");
    if (tenants === 0 && cosignatures === 0) out.push("freshness: nothing says that there is no later head");
    return out;
  }

  #unreadableReport(): VerifyReport {
    const error = this.#unreadable ?? new RunsealError("malformed-bundle", "the bundle is empty");
    const unsupported = error.code.startsWith("unsupported");
    const walker = this.#opened?.walker ?? null;
    const seq = walker === null ? 0 : walker.next;
    this.#add(unsupported ? "unsupported-entry" : "malformed-entry", seq, error.message);
    const first = this.#issues.first;
    return {
      verdict: unsupported && this.#issues.total === 1 ? "unsupported" : "broken",
      from: this.#opened?.header.from ?? 1,
      to: this.#opened?.header.to ?? 0,
      checked: walker?.checked ?? 0,
      head: null,
      last: null,
      issues: this.#issues.all.map(({ seq: at, code, detail }) => ({ seq: at, code, detail })),
      ...(first === undefined ? {} : { break: breakOf(first) }),
      trusted: [],
      not_checked: ["everything after the line that can't be read"],
      pinned: false,
      verified_by: this.#options.verifiedBy,
    };
  }
}

/** The report's `break`. */
export function breakOf(issue: Issue): NonNullable<VerifyReport["break"]> {
  return {
    seq: issue.seq,
    verdict: verdictOf(issue.code),
    expected: issue.expected,
    found: issue.found,
    detail: issue.detail,
  };
}
