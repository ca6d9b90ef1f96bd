/**
 * `runseal verify`: a bundle offline, or a log as the service stores it.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import type { VerifyReport } from "../../shared/api/schemas.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { NoteKey } from "../../shared/note/vkey.ts";
import { parseWitnessList } from "../../shared/note/witness-list.ts";
import type { KeptHead } from "../../shared/verify/bundle.ts";
import { BundleVerifier } from "../../shared/verify/bundle.ts";
import { verifyText } from "../../shared/verify/text.ts";
import type { Command, ExitCode, Invocation } from "../command.ts";
import {
  clientOf,
  EXIT,
  JSON_OPTION,
  PRINCIPAL_OPTION,
  positive,
  required,
  SERVER_OPTIONS,
  text,
  UsageError,
} from "../command.ts";
import { fileLines, fileText } from "../files.ts";

function keptHead(invocation: Invocation): KeptHead | undefined {
  const value = text(invocation.values, "head");
  if (value === undefined) return undefined;
  const match = /^([1-9][0-9]{0,15}):([0-9a-f]{64})$/.exec(value);
  if (match === null) throw new UsageError("--head takes SEQ:HASH, as runseal head prints it");
  return { seq: Number(match[1]), hash: match[2] ?? "" };
}

function finish(invocation: Invocation, report: VerifyReport): ExitCode {
  const { out, json, values } = invocation;
  out(json ? JSON.stringify(report) : verifyText(report));
  if (report.verdict !== "intact") return EXIT.fails;
  return report.pinned === false && values["allow-unpinned"] !== true ? EXIT.fails : EXIT.holds;
}

/** The witnesses whose cosignatures count: a vkey a line. */
async function witnessesOf(path: string | undefined): Promise<NoteKey[]> {
  if (path === undefined) return [];
  const list = await fileText(path);
  try {
    return parseWitnessList(nativeCrypto, list);
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    throw new UsageError(
      `--witnesses takes a file with the vkey of a witness on each line: ${error.message}`,
    );
  }
}

async function verifyBundle(invocation: Invocation, path: string): Promise<ExitCode> {
  const { values, note } = invocation;
  const registryId = text(values, "registry");
  if (registryId !== undefined && !/^[0-9a-f]{64}$/.test(registryId)) {
    throw new UsageError("--registry takes a registry id: 64 hex digits");
  }
  const checkpointFile = text(values, "checkpoint");
  const kept = keptHead(invocation);
  const verifier = new BundleVerifier(nativeCrypto, {
    verifiedBy: "runseal verify, offline",
    ...(registryId === undefined ? {} : { registryId }),
    ...(checkpointFile === undefined ? {} : { checkpoint: await fileText(checkpointFile) }),
    ...(kept === undefined ? {} : { keptHead: kept }),
    witnesses: await witnessesOf(text(values, "witnesses")),
    onProgress: (checked) => note(`${checked} entries checked`),
  });
  for await (const line of fileLines(path)) verifier.line(line);
  return finish(invocation, verifier.finish());
}

/** Walks the stored log part by part and joins the reports. */
async function verifyStored(invocation: Invocation): Promise<ExitCode> {
  const { values, note } = invocation;
  const client = clientOf(invocation);
  const principal = required(values, "principal");
  const to = positive(values, "to");
  const kept = keptHead(invocation);
  const first = positive(values, "from") ?? 1;
  if (to !== undefined && to < first) throw new UsageError("--to is before --from");
  if (kept !== undefined && (kept.seq < first || (to !== undefined && kept.seq > to))) {
    throw new UsageError("--head is outside --from and --to");
  }
  let from = first;
  let checked = 0;
  let keptReport: VerifyReport["kept_head"];
  for (;;) {
    const askHead = kept !== undefined && kept.seq >= from;
    const report = await client.verify(principal, {
      from,
      ...(to === undefined ? {} : { to }),
      ...(askHead ? { head: `${kept.seq}:${kept.hash}` } : {}),
    });
    checked += report.checked;
    keptReport = report.kept_head ?? keptReport;
    if (report.next === undefined || report.verdict !== "intact") {
      const shorter = to !== undefined && report.verdict === "intact" && report.to < to;
      const whole = {
        ...report,
        from: first,
        checked,
        ...(keptReport === undefined ? {} : { kept_head: keptReport }),
      };
      const code = finish(invocation, whole);
      if (!shorter) return code;
      note(`the log is shorter than asked: --to ${to} was not reached; the last entry is ${report.to}`);
      return EXIT.fails;
    }
    note(`${checked} entries checked`);
    from = report.next;
  }
}

export const verifyCommand: Command = {
  name: "verify",
  usage: "BUNDLE [--registry ID] [--checkpoint FILE] | --principal NAME",
  summary: "Verify a bundle offline, or a log as the service stores it; the first break is named",
  details: [
    "Offline, something must be pinned that you hold from elsewhere: the tenant's registry id, or a checkpoint that you",
    "kept. Without either the bundle can only be consistent with itself: it says so and exits 1.",
  ].join("\n"),
  options: {
    registry: { type: "string", value: "ID", help: "the tenant's registry id, 64 hex digits (bundle)" },
    checkpoint: { type: "string", value: "FILE", help: "a checkpoint that you kept (bundle)" },
    head: { type: "string", value: "SEQ:HASH", help: "a head that you kept" },
    witnesses: {
      type: "string",
      value: "FILE",
      help: "vkeys of the witnesses that you trust, one a line (bundle)",
    },
    "allow-unpinned": { type: "boolean", help: "exit 0 for a bundle that is only consistent with itself" },
    ...PRINCIPAL_OPTION,
    from: { type: "string", value: "SEQ", help: "first entry to walk (log)" },
    to: { type: "string", value: "SEQ", help: "last entry to walk (log)" },
    ...SERVER_OPTIONS,
    ...JSON_OPTION,
  },
  async run(invocation) {
    const [path] = invocation.positionals;
    if (invocation.positionals.length > 1) throw new UsageError("verify takes one bundle");
    if ((path === undefined) === (invocation.values.principal === undefined)) {
      throw new UsageError("verify takes a bundle, or --principal NAME: one of them");
    }
    return path === undefined ? verifyStored(invocation) : verifyBundle(invocation, path);
  },
};
