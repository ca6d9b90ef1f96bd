import { describe, expect, it } from "vitest";
import { found, H, listOf, OTHER_H } from "./findings-support.ts";
import { type Parts, TestLog } from "./support.ts";

describe("capabilities", () => {
  const created = (token_id = "t1"): Parts => ({
    run: null,
    action: { token_id, resource: "x", permissions: ["read"], scope: "session" },
  });
  const revoked = (token_id = "t1"): Parts => ({ run: null, action: { token_id } });
  const use = (token_id = "t1", more: Parts = {}): Parts => ({
    action: { path: "/x" },
    authorization: { type: "capability", token_id },
    ...more,
  });

  it("are used between grant and revocation, and after a new grant", () => {
    const log = new TestLog();
    log.add("capability.created", created());
    log.add("file.read", use());
    log.add("capability.revoked", revoked());
    log.add("capability.created", created());
    log.add("file.read", use());
    expect(found(log.entries)).toEqual([]);
  });

  it("are used before they are granted", () => {
    const log = new TestLog();
    log.add("file.read", use());
    log.add("file.read", use());
    log.add("capability.created", created());
    for (const context of ["log", "run"] as const)
      expect(found(log.entries, { context })).toEqual([
        ["capability_used_before_grant", 1, 3],
        ["capability_used_before_grant", 2, 3],
      ]);
  });

  it("are used and never granted, which only the whole log tells", () => {
    const log = new TestLog();
    log.add("capability.created", created("t2"));
    log.add("file.read", use());
    expect(found(log.entries)).toEqual([["capability_not_granted", 2]]);
    const alone = listOf(log.entries, { context: "run" });
    expect(alone.findings).toEqual([]);
    expect(alone.notes.length).toBe(1);
  });

  it("are used after they are revoked", () => {
    const log = new TestLog();
    log.add("capability.created", created());
    log.add("capability.revoked", revoked());
    log.add("tool.call.started", { ...use(), action: { tool: "t", args: {} } });
    expect(found(log.entries)).toEqual([["capability_used_after_revocation", 2, 3]]);
  });

  it("are granted and revoked by a change, too", () => {
    const log = new TestLog();
    const change = (field: string): Parts => ({
      run: null,
      action: { target_principal: "p", kind: "capability", via: "admin", [field]: ["t1"] },
    });
    log.add("capability.changed", change("granted"));
    log.add("file.read", use());
    log.add("capability.changed", change("revoked"));
    expect(found(log.entries)).toEqual([]);
    log.add("file.read", use());
    expect(found(log.entries)).toEqual([["capability_used_after_revocation", 3, 4]]);
  });

  it("are not used by an act that was denied, nor again by an act's completion", () => {
    const log = new TestLog();
    log.add("file.read", use("t9", { action: { path: "/x" }, outcome: { status: "denied" } }));
    log.add("capability.created", created());
    log.add("tool.call.started", use("t1", { action: { tool: "t", args: {} } }));
    log.add("capability.revoked", revoked());
    log.add("tool.call.completed", use("t1", { action: { tool: "t" }, outcome: { status: "success" } }));
    expect(found(log.entries)).toEqual([]);
  });

  it("that could not be made are not there", () => {
    const log = new TestLog();
    log.add("capability.created", { ...created(), outcome: { status: "failure" } });
    log.add("file.read", use());
    expect(found(log.entries)).toEqual([["capability_not_granted", 2]]);
  });

  it("of another run's uses are not this run's", () => {
    const log = new TestLog();
    log.add("file.read", use("t1", { run: "r2", action: { path: "/x" } }));
    expect(found(log.entries)).toEqual([]);
  });
});

describe("code", () => {
  const code = (code_hash: string | undefined, more: Record<string, unknown> = {}): Parts => ({
    action: { code_id: "capsule", ...(code_hash === undefined ? {} : { code_hash }), ...more },
  });

  it("is loaded as it was installed", () => {
    const log = new TestLog();
    log.add("code.installed", { ...code(H), run: null });
    log.add("code.loaded", code(H));
    log.add("code.loaded", code(undefined));
    expect(found(log.entries)).toEqual([]);
  });

  it.each(["code_hash", "manifest_hash"])("is loaded with another %s", (field) => {
    const log = new TestLog();
    log.add("code.installed", { ...code(undefined, { [field]: H }), run: null });
    log.add("code.loaded", code(undefined, { [field]: OTHER_H }));
    expect(found(log.entries)).toEqual([["code_hash_differs", 1, 2]]);
  });

  it("is compared with the installation of its version, else with the last one", () => {
    const log = new TestLog();
    log.add("code.installed", code(H, { version: "1" }));
    log.add("code.installed", code(OTHER_H, { version: "2" }));
    log.add("code.loaded", code(H, { version: "1" }));
    log.add("code.loaded", code(OTHER_H));
    expect(found(log.entries)).toEqual([]);
    log.add("code.loaded", code(H));
    log.add("code.loaded", code(H, { version: "2" }));
    expect(found(log.entries)).toEqual([
      ["code_hash_differs", 2, 5],
      ["code_hash_differs", 2, 6],
    ]);
  });

  it("is loaded and was never installed: a warning, which only the whole log gives", () => {
    const log = new TestLog();
    log.add("code.loaded", code(H));
    expect(listOf(log.entries).findings.map(({ kind, severity }) => [kind, severity])).toEqual([
      ["code_not_installed", "warning"],
    ]);
    expect(found(log.entries, { context: "run" })).toEqual([]);
  });
});
