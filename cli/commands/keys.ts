/**
 * `runseal keys`: the tenant's key registry, and keys that the service never sees.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import type { RegistryRecordOutput } from "../../sdk/keys.ts";
import { Keys } from "../../sdk/keys.ts";
import { fromBase64, toHex } from "../../shared/bytes.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { RegistryRecord, Role } from "../../shared/registry/record.ts";
import { decodeRecord, OPEN_ROLES, OPS, ROLES } from "../../shared/registry/record.ts";
import { signedMessage } from "../../shared/signing.ts";
import { formatTime } from "../../shared/time.ts";
import type { Command, ExitCode, Invocation } from "../command.ts";
import { clientOf, EXIT, JSON_OPTION, required, SERVER_OPTIONS, text, UsageError } from "../command.ts";
import { makeKeyFile, readKeyFile } from "../key-file.ts";

function roleOf(role: Role): string {
  return Object.entries(ROLES).find(([, number]) => number === role)?.[0] ?? String(role);
}

function opOf(record: RegistryRecord): string {
  return Object.entries(OPS).find(([, number]) => number === record.op)?.[0] ?? String(record.op);
}

function describe(record: RegistryRecord): string[] {
  return [
    ...record.add.map(({ role, key }) => `  adds     ${roleOf(role).padEnd(13)}${toHex(key)}`),
    ...record.retire.map(({ role, key }) => `  retires  ${roleOf(role).padEnd(13)}${toHex(key)}`),
  ];
}

/** Decodes what was given as base64. Throws `UsageError`. */
function recordOf(base64: string): { bytes: Uint8Array; record: RegistryRecord } {
  try {
    const bytes = fromBase64(base64);
    return { bytes, record: decodeRecord(bytes) };
  } catch (error) {
    if (error instanceof RunsealError) throw new UsageError("--record: it is no registry record in base64");
    throw error;
  }
}

function printed(invocation: Invocation, output: RegistryRecordOutput): ExitCode {
  if (invocation.json) invocation.out(JSON.stringify(output));
  else {
    const { record } = recordOf(output.record);
    invocation.out(`epoch ${output.epoch}: ${opOf(record)}, in effect from ${output.effective_at}`);
    for (const line of describe(record)) invocation.out(line);
  }
  return EXIT.holds;
}

async function list(invocation: Invocation): Promise<ExitCode> {
  const registry = await clientOf(invocation).registry();
  if (invocation.json) {
    invocation.out(JSON.stringify(registry));
    return EXIT.holds;
  }
  invocation.out(`registry ${registry.registry_id}`);
  for (const entry of registry.records) {
    const { record } = recordOf(entry.record);
    const waits = entry.epoch > registry.epoch ? `, in effect from ${entry.effective_at}` : "";
    invocation.out(`epoch ${entry.epoch}: ${opOf(record)}${waits}`);
    for (const line of describe(record)) invocation.out(line);
  }
  return EXIT.holds;
}

async function make(invocation: Invocation, note: string): Promise<ExitCode> {
  const file = required(invocation.values, "out");
  const publicKey = await makeKeyFile(file);
  invocation.out(invocation.json ? JSON.stringify({ public_key: publicKey, file }) : publicKey);
  invocation.note(`The private key is in ${file}. ${note}`);
  return EXIT.holds;
}

/** Signs a record, on a machine that may have no network; says what it is that is signed. */
async function sign(invocation: Invocation): Promise<ExitCode> {
  const { bytes, record } = recordOf(required(invocation.values, "record"));
  const signer = await readKeyFile(required(invocation.values, "key-file"));
  const when = formatTime(record.time);
  invocation.note(`signs epoch ${record.epoch}: ${opOf(record)}, of ${when}`);
  for (const line of describe(record)) invocation.note(line);
  const signature = toHex(signer.sign(signedMessage("registry", nativeCrypto.sha256(bytes))));
  invocation.out(invocation.json ? JSON.stringify({ signature }) : signature);
  return EXIT.holds;
}

function managedRole(invocation: Invocation): "audit" | "log" {
  const role = text(invocation.values, "role") ?? "audit";
  if (role !== "audit" && role !== "log") throw new UsageError("--role is audit or log");
  return role;
}

async function recover(invocation: Invocation): Promise<ExitCode> {
  const keys = new Keys(clientOf(invocation));
  const record = text(invocation.values, "record");
  if (record !== undefined) {
    return printed(invocation, await keys.recover(record, required(invocation.values, "signature")));
  }
  const proposal = await keys.proposeRecovery(managedRole(invocation));
  invocation.out(invocation.json ? JSON.stringify(proposal) : proposal.record);
  invocation.note("Sign it where the recovery key is: runseal keys sign --key-file FILE --record RECORD");
  invocation.note("Then: runseal keys recover --record RECORD --signature SIGNATURE");
  return EXIT.holds;
}

const ACTIONS: Readonly<Record<string, (invocation: Invocation) => Promise<ExitCode>>> = {
  list,
  new: (invocation) => make(invocation, "Add it with: runseal keys add --key-file FILE"),
  recovery: (invocation) =>
    make(invocation, "Keep it offline. Its public key is bound when the tenant is created, or never."),
  sign,
  add: async (invocation) => {
    const asked = text(invocation.values, "role") ?? "client";
    const role = OPEN_ROLES.find((one) => one === asked);
    if (role === undefined) throw new UsageError(`--role is one of ${OPEN_ROLES.join(", ")}`);
    const signer = await readKeyFile(required(invocation.values, "key-file"));
    return printed(invocation, await new Keys(clientOf(invocation)).add(role, signer));
  },
  retire: async (invocation) => {
    const key = invocation.positionals[1];
    if (key === undefined || !/^[0-9a-f]{64}$/.test(key)) throw new UsageError("give the public key, in hex");
    return printed(invocation, await new Keys(clientOf(invocation)).retire(key));
  },
  rotate: async (invocation) =>
    printed(invocation, await new Keys(clientOf(invocation)).rotate(managedRole(invocation))),
  recover,
};

export const keysCommand: Command = {
  name: "keys",
  usage: "list | new | add | retire KEY | rotate | recovery | recover | sign",
  summary:
    "The tenant's key registry: list, add, retire and rotate keys; make keys that the service never sees",
  details: [
    "  list                                   every record, with its keys",
    "  new --out FILE                         make a key, in a file that you alone can read",
    "  add --key-file FILE [--role ROLE]      register it: client (default), witness, astrid_audit, astrid_v1",
    "  retire KEY                             take a key's role away, for good",
    "  rotate [--role audit|log]              replace a key that the service holds",
    "  recovery --out FILE                    make the offline recovery key; prints the public key to bind",
    "  recover [--role audit|log]             replace a managed key: prints the record to sign with the recovery key",
    "  recover --record R --signature S       ... and sends it, signed",
    "  sign --key-file FILE --record R        sign a record; needs no network",
  ].join("\n"),
  options: {
    "key-file": { type: "string", value: "FILE", help: "the key file" },
    out: {
      type: "string",
      short: "o",
      value: "FILE",
      help: "the key file to make; an existing one is never replaced",
    },
    role: { type: "string", value: "ROLE", help: "the key's role" },
    record: { type: "string", value: "BASE64", help: "a registry record" },
    signature: { type: "string", value: "HEX", help: "the signature over the record" },
    ...SERVER_OPTIONS,
    ...JSON_OPTION,
  },
  run(invocation) {
    const name = invocation.positionals[0] ?? "list";
    const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined;
    if (action === undefined) throw new UsageError(`there is no keys ${name}: see runseal help keys`);
    return action(invocation);
  },
};
