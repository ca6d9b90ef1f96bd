/**
 * Verifies a bundle line by line, offline, trusting only what the caller pins: the registry id, or a checkpoint that
 * was kept elsewhere. Memory does not grow with the bundle. docs/format.md, "Verification", is the specification.
 *
 *     const verifier = new BundleVerifier(crypto, { registryId });
 *     for await (const line of lines) verifier.line(line);
 *     const report = verifier.finish();
 *
 * @module
 */
import type { VerifyReport } from "../api/schemas.ts";
import type { BundleHeader, BundleLine, FieldsLine, LeafLine, RegistryLine } from "../bundle/format.ts";
import { BundleError, bundleBytes, bundleHash } from "../bundle/format.ts";
import { LeafBytes } from "../bundle/leaf-bytes.ts";
import { parseBundleHeader, parseBundleLine } from "../bundle/parse.ts";
import { fromHex, toHex } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import type { LogName } from "../entry/log-id.ts";
import { computeLogId, parseOrigin, tenantOrigin } from "../entry/log-id.ts";
import type { ScannedLeaf } from "../entry/scan-leaf.ts";
import { RunsealError } from "../errors.ts";
import type { NoteKey } from "../note/vkey.ts";
import { RegistryChain } from "../registry/chain.ts";
import { ROLES } from "../registry/record.ts";
import type { AnchorFindings, RecordNote } from "./bundle-anchors.ts";
import { BundleAnchors } from "./bundle-anchors.ts";
import { BundleCounts } from "./bundle-counts.ts";
import type { GoodHead } from "./bundle-end.ts";
import { BundleEnd, sizeOf } from "./bundle-end.ts";
import type { KeptHead } from "./bundle-tree.ts";
import { BundleTree } from "./bundle-tree.ts";
import { alteredField } from "./content.ts";
import { freshnessOf, trustedFor } from "./freshness.ts";
import type { Issue } from "./issues.ts";
import { breakOf, IssueList } from "./issues.ts";
import { LogWalker } from "./walk.ts";

export type { KeptHead } from "./bundle-tree.ts";

export interface BundleOptions {
  /** The tenant's registry id that the caller holds from elsewhere, hex. */
  readonly registryId?: string;
  /** A checkpoint that the caller kept: a signed note. */
  readonly checkpoint?: string;
  readonly keptHead?: KeptHead;
  /** Keys of the witnesses whose cosignatures are to count. */
  readonly witnesses?: readonly NoteKey[];
  /** Called now and then with the entries checked so far. */
  readonly onProgress?: (checked: number) => void;
  /** Who verifies, for the report. */
  readonly verifiedBy: string;
}

/** Entries between two calls of `onProgress`. */
const PROGRESS_EVERY = 10_000;

const BLANK = /^[ \t\r]*$/;

/** The order of the lines; those of one entry are of one stage. */
const STAGE: Readonly<Record<BundleLine["t"], number>> = {
  registry: 0,
  leaf: 1,
  content: 1,
  disclosure: 1,
  hash: 1,
  checkpoint: 2,
  tenant: 3,
  cosignature: 4,
};

/** The entry whose lines are being read. */
interface CurrentEntry {
  readonly seq: number;
  /** Null where its bytes are not those of an entry that this version reads; `hash` where only its hash is there. */
  leaf: ScannedLeaf | null | "hash";
  /** Lines of values seen, and the fields that they opened; null before the first. */
  seen: Set<string> | null;
}

interface Opened {
  readonly header: BundleHeader;
  readonly name: LogName;
  readonly registry: RegistryChain;
  /** Made when the first line after the registry's comes. */
  walker: LogWalker | null;
}

function malformed(message: string): BundleError {
  return new BundleError("malformed-bundle", message);
}

export class BundleVerifier {
  readonly #crypto: CryptoPort;
  readonly #options: BundleOptions;
  readonly #issues = new IssueList();
  readonly #counts = new BundleCounts();
  readonly #tree: BundleTree;
  readonly #anchors: BundleAnchors;
  /** A leaf's bytes, good until the next leaf's line: its values are checked before that. */
  readonly #leafBytes = new LeafBytes();
  /** What each registry record says that the chain does not keep. */
  readonly #records: RecordNote[] = [];
  #opened: Opened | null = null;
  #stage = 0;
  #checkpoint: string | null = null;
  #entry: CurrentEntry | null = null;
  #lastEpoch: number | null = null;
  #lines = 0;
  /** Number of the last line that is not blank. */
  #last = 0;
  /** Why reading stopped, and at which line. */
  #unreadable: { readonly error: RunsealError; readonly line: number } | null = null;

  constructor(crypto: CryptoPort, options: BundleOptions) {
    this.#crypto = crypto;
    this.#options = options;
    this.#anchors = new BundleAnchors(crypto);
    this.#tree = new BundleTree(crypto, options.keptHead, sizeOf(options.checkpoint));
  }

  /** Takes the next line, without its line feed. An empty line is skipped. Nothing is thrown for a bad bundle. */
  line(text: string): void {
    this.#lines += 1;
    if (BLANK.test(text)) return;
    this.#last = this.#lines;
    if (this.#unreadable !== null) return;
    try {
      if (this.#opened === null) this.#open(parseBundleHeader(text));
      else this.#take(this.#opened, parseBundleLine(text, this.#leafBytes));
    } catch (error) {
      if (!(error instanceof RunsealError)) throw error;
      this.#unreadable = { error, line: this.#lines };
    }
  }

  #open(header: BundleHeader): void {
    const name = parseOrigin(header.origin);
    if (header.from > header.to + 1) throw malformed("the range of line 1 is none");
    this.#opened = { header, name, registry: new RegistryChain(this.#crypto), walker: null };
  }

  #take(opened: Opened, line: BundleLine): void {
    const stage = STAGE[line.t];
    const twice = line.t === "checkpoint" && this.#checkpoint !== null;
    if (stage < this.#stage || twice) throw malformed("a line is not in the order of the format");
    this.#stage = stage;
    const walker = stage === 0 ? null : this.#walker(opened);
    switch (line.t) {
      case "registry":
        this.#addRecord(opened.registry, line);
        return;
      case "leaf":
        this.#addLeaf(opened.header, this.#walker(opened), line);
        return;
      case "content":
      case "disclosure":
        this.#checkFields(line);
        return;
      case "hash":
        this.#counts.hashes += 1;
        this.#entry = { seq: line.seq, leaf: "hash", seen: null };
        walker?.withheld(line.seq, bundleHash(line.hash));
        return;
      case "checkpoint":
        this.#checkpoint = line.checkpoint;
        return;
      case "tenant":
      case "cosignature":
        this.#anchors.take(line);
        return;
    }
  }

  #addRecord(registry: RegistryChain, line: RegistryLine): void {
    const bytes = bundleBytes(line.record);
    const code = registry.epoch < 0 ? "invalid-genesis" : "invalid-registry";
    if (line.epoch !== registry.epoch + 1) {
      this.#add(code, 0, `registry record ${line.epoch} comes where ${registry.epoch + 1} was expected`);
      return;
    }
    try {
      const { retire } = registry.add({
        bytes,
        signatures: line.signatures.map(({ key, signature }) => ({
          key: fromHex(key),
          signature: fromHex(signature),
        })),
      });
      const retiresAudit = retire.filter(({ role }) => role === ROLES.audit).map(({ key }) => key);
      this.#records.push({ hash: this.#crypto.sha256(bytes), retiresAudit });
    } catch (error) {
      if (!(error instanceof RunsealError) || error.code === "unsupported-registry") throw error;
      this.#add(code, 0, error.message);
    }
  }

  #addLeaf(header: BundleHeader, walker: LogWalker, line: LeafLine): void {
    if (line.seq === walker.next && (line.seq < header.from || line.seq > header.to)) {
      throw malformed("a leaf is outside of the range that line 1 names");
    }
    this.#counts.leaves += 1;
    // The walker tells the tree of the hash before it returns, so that the entry is set first.
    const entry: CurrentEntry = { seq: line.seq, leaf: null, seen: null };
    this.#entry = entry;
    const leaf = walker.add({
      seq: line.seq,
      leaf: line.prefixed ?? bundleBytes(line.leaf),
      prefixed: line.prefixed !== undefined,
      recordedHash: line.hash,
    });
    entry.leaf = leaf;
    if (leaf !== null) {
      this.#counts.fields += leaf.fields;
      this.#lastEpoch = leaf.epoch;
    }
    if (walker.checked % PROGRESS_EVERY === 0) this.#options.onProgress?.(walker.checked);
  }

  #checkFields(line: FieldsLine): void {
    const entry = this.#entry;
    if (entry === null || entry.seq !== line.seq || entry.leaf === "hash") {
      throw malformed("values do not follow their leaf");
    }
    // A disclosure comes after the content, and each of them once.
    const seen = entry.seen ?? new Set<string>();
    entry.seen = seen;
    if (seen.has("disclosure") || seen.has(line.t)) throw malformed("values come twice");
    seen.add(line.t);
    for (const { section, name } of line.fields) {
      const field = `/${section}/${name}`;
      if (seen.has(field)) throw malformed("a field is opened twice");
      seen.add(field);
    }
    if (entry.leaf === null) return;
    const openings = line.fields.map(({ section, name, salt, text }) => ({
      section,
      name,
      salt: fromHex(salt),
      text,
    }));
    const altered = alteredField(this.#crypto, entry.leaf, openings);
    this.#counts.opened += line.fields.length;
    if (altered !== null) {
      this.#add(
        "altered-content",
        line.seq,
        `the value of ${altered} is not the one that the leaf commits to`,
      );
    }
  }

  /** The walker; the registry's lines are over when it is asked for. */
  #walker(opened: Opened): LogWalker {
    if (opened.walker !== null) return opened.walker;
    const { header, name, registry } = opened;
    if (registry.epoch < 0) throw malformed("the bundle has no genesis record that holds");
    const found = toHex(registry.registryId);
    const { registryId } = this.#options;
    if (found !== header.registry_id) {
      this.#add(
        "invalid-genesis",
        0,
        "the genesis record does not give the registry id of line 1",
        header.registry_id,
        found,
      );
    }
    if (registryId !== undefined && found !== registryId) {
      this.#add("invalid-genesis", 0, "the registry is not the pinned one", registryId, found);
    }
    if (registry.origin !== tenantOrigin(name.host, name.tenant)) {
      this.#add("log-id-mismatch", 0, "the origin is not one of the registry's tenant");
    }
    opened.walker = new LogWalker({
      crypto: this.#crypto,
      logId: computeLogId(this.#crypto, registry.registryId, name.principal, name.generation),
      registry,
      issues: this.#issues,
      from: 1,
      onHash: (seq, hash) => this.#tree.add(seq, hash, this.#entry?.leaf !== "hash"),
    });
    return opened.walker;
  }

  #add(
    code: Issue["code"],
    seq: number,
    detail: string,
    expected: string | null = null,
    found: string | null = null,
  ): void {
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
      this.#unreadable = { error, line: this.#lines };
      return this.#unreadableReport();
    }
    const end = new BundleEnd(this.#crypto, opened.registry, opened.header, this.#tree, this.#issues);
    const good = end.openHead(this.#checkpoint, walker.next - 1, this.#lastEpoch);
    const anchors = this.#judgeAnchors(opened, good);
    const keptSize = sizeOf(this.#options.checkpoint);
    const head = end.checkHead(good, this.#checkpoint, walker.next - 1, keptSize, anchors);
    if (this.#options.checkpoint !== undefined) end.checkKeptCheckpoint(this.#options.checkpoint);
    const kept = this.#options.keptHead === undefined ? null : end.checkKeptHead(this.#options.keptHead);
    end.addIssues(anchors.issues);
    const { header } = opened;
    const { registryId, checkpoint, keptHead } = this.#options;
    const pinned = registryId !== undefined || checkpoint !== undefined;
    return {
      verdict: this.#issues.verdict,
      from: header.from,
      to: header.to,
      checked: walker.checked,
      head,
      last: walker.last === null ? null : { seq: walker.last.seq, hash: toHex(walker.last.hash) },
      ...this.#findings(),
      ...(kept === null ? {} : { kept_head: kept }),
      trusted: [
        ...(registryId === undefined ? [] : ["the pinned registry id"]),
        ...(checkpoint === undefined ? [] : ["the kept checkpoint"]),
        ...(keptHead === undefined ? [] : ["the kept head"]),
        ...(pinned ? [] : ["the registry inside the bundle: nothing was pinned"]),
        ...trustedFor(anchors),
        "the submitters: a log proves what was sent, by which credential and in which order, not that it is true",
      ],
      not_checked: this.#counts.notChecked(this.#entry?.leaf === "hash", anchors),
      ...freshnessOf(anchors),
      pinned,
      verified_by: this.#options.verifiedBy,
    };
  }

  #judgeAnchors({ header, name, registry }: Opened, good: GoodHead | null): AnchorFindings {
    return this.#anchors.judge({
      registry,
      records: this.#records,
      host: name.host,
      tenantOrigin: header.origin.slice(0, header.origin.lastIndexOf("/p/")),
      logId: computeLogId(this.#crypto, registry.registryId, name.principal, name.generation),
      head: good?.checkpoint ?? null,
      witnesses: this.#options.witnesses ?? [],
    });
  }

  #findings(): Pick<VerifyReport, "issues" | "break"> {
    const { all, first } = this.#issues;
    return {
      issues: all.map(({ seq, code, detail }) => ({ seq, code, detail })),
      ...(first === undefined ? {} : { break: breakOf(first) }),
    };
  }

  #unreadableReport(): VerifyReport {
    const walker = this.#opened?.walker ?? null;
    const { error, line } = this.#unreadable ?? { error: malformed("the bundle is empty"), line: 0 };
    const cut = error instanceof BundleError && error.cut && line === this.#last;
    const code = error.code.startsWith("unsupported")
      ? "unsupported-entry"
      : cut
        ? "truncated"
        : "malformed-entry";
    this.#add(
      code,
      walker === null ? 0 : walker.next,
      cut ? `the bundle ends inside line ${line}` : `line ${line}: ${error.message}`,
    );
    return {
      verdict: this.#issues.verdict,
      from: this.#opened?.header.from ?? 1,
      to: this.#opened?.header.to ?? 0,
      checked: walker?.checked ?? 0,
      head: null,
      last: null,
      ...this.#findings(),
      trusted: [],
      not_checked: ["everything after the line that can't be read"],
      pinned: false,
      verified_by: this.#options.verifiedBy,
    };
  }
}
