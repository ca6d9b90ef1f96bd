import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { buildPage } from "../../../examples/verify-in-browser/build.ts";
import { toHex } from "../../../shared/bytes.ts";
import { TestLog, TestTenant } from "../../shared/verify/test-tenant.ts";
import type { Page } from "./chromium.ts";
import { Chromium, describeWithChromium } from "./chromium.ts";

describeWithChromium("the page that verifies a bundle", () => {
  const tenant = new TestTenant("browser");
  const log = new TestLog(tenant).fill(20);
  const lines = log.lines();
  let folder: string;
  let browser: Chromium;
  let page: Page;
  let bundles = 0;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "runseal-page-"));
    writeFileSync(join(folder, "page.html"), await buildPage());
    browser = await Chromium.launch();
  });
  afterAll(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(async () => {
    page = await browser.open(`file://${join(folder, "page.html")}`);
  });

  interface Kept {
    registry?: string;
    checkpoint?: string;
    head?: string;
  }
  const bundle = (name: string, content: readonly string[]) => {
    const path = join(folder, name);
    writeFileSync(path, `${content.join("\n")}\n`);
    return path;
  };
  const type = async (kept: Kept) => {
    for (const [id, text] of Object.entries(kept)) {
      await page.evaluate(`document.getElementById(${JSON.stringify(id)}).value = ${JSON.stringify(text)}`);
    }
  };
  const press = () => page.evaluate(`document.getElementById("verify").click()`);
  const shown = () => page.until(`!document.getElementById("result").hidden`);
  const words = (id: string) =>
    page.evaluate<string>(`document.getElementById(${JSON.stringify(id)}).textContent`);
  const details = () => page.evaluate<string>(`document.getElementById("details").innerText`);

  async function verify(content: readonly string[], kept: Kept = {}): Promise<string> {
    bundles += 1;
    await page.chooseFiles("#file", [bundle(`bundle-${bundles}.ndjson`, content)]);
    await type(kept);
    await press();
    await shown();
    return words("verdict");
  }

  it("says intact of a bundle whose registry id was pasted, what was trusted, and what was not checked", async () => {
    expect(await verify(lines, { registry: ` ${tenant.registryId.toUpperCase()}\n` })).toBe("Intact");
    const text = await details();
    expect(text).toContain("20 (range 1 to 20)");
    expect(text).toContain("the pinned registry id");
    expect(text).toMatch(/What was not checked\s+freshness/);
    expect(text).not.toContain("First break");
  });

  it("says intact with a kept checkpoint, whatever became of the white space around it", async () => {
    const note = log.checkpoint(undefined, 12);
    for (const checkpoint of [note, note.trimEnd().replaceAll("\n", "\r\n"), `\n ${note}\n\n`]) {
      expect(await verify(lines, { checkpoint })).toBe("Intact");
      expect(await details()).toContain("the kept checkpoint");
    }
    const other = new TestLog(tenant, "other").fill(12);
    expect(await verify(lines, { checkpoint: other.checkpoint() })).toBe("Broken at entry 0: altered");
  });

  it("does not say intact where nothing was pinned, also with a kept head", async () => {
    const head = `7:${toHex(log.entries[6]?.hash ?? new Uint8Array())}`;
    expect(await verify(lines, { head })).toBe("Consistent, not pinned");
    expect(await details()).toContain("entry 7 matches");
  });

  it("names the first break, and what was expected and found", async () => {
    const altered = lines.map((line) =>
      line.includes('"t":"content","seq":9,') ? line.replace("/tmp/8", "/etc/8") : line,
    );
    expect(await verify(altered, { registry: tenant.registryId })).toBe("Broken at entry 9: altered");
    expect(await details()).toContain("the value of /action/args is not the one that the leaf commits to");
    const missing = lines.filter((line) => !line.includes('"seq":9,'));
    expect(await verify(missing, { registry: tenant.registryId })).toBe("Broken at entry 10: missing");
    expect(await details()).toMatch(/Expected\s+9\s+Found\s+10/);
  });

  it("does not take a fabricated tenant for the pinned one", async () => {
    const forged = new TestLog(new TestTenant("forger")).fill(20);
    expect(await verify(forged.lines(), { registry: tenant.registryId })).toBe(
      "Broken at entry 0: malformed",
    );
    expect(await details()).toContain("the registry is not the pinned one");
  });

  it("says of a later version that it can't be read, and of what is no bundle that it is broken", async () => {
    expect(await verify([...lines, '{"t":"novelty"}'])).toContain("Not readable by this version");
    expect(await verify(["hello"])).toContain("Broken");
  });

  it("takes a file that is dropped on it, and not one that misses", async () => {
    const dropOn = (id: string, name: string) =>
      page.evaluate(`(() => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([${JSON.stringify(`${lines.join("\n")}\n`)}], ${JSON.stringify(name)}));
        const target = ${id === "body" ? "document.body" : `document.getElementById(${JSON.stringify(id)})`};
        target.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
      })()`);
    await dropOn("body", "missed.ndjson");
    expect(await words("file-name")).toBe("");
    await dropOn("drop", "dropped.ndjson");
    expect(await words("file-name")).toContain("dropped.ndjson");
    await type({ registry: tenant.registryId });
    await press();
    await shown();
    expect(await words("verdict")).toBe("Intact");
  });

  it("says what is wrong with what was pasted, and asks for a file", async () => {
    await press();
    expect(await words("status")).toBe("Choose a bundle first.");
    await type({ registry: "abc", checkpoint: "nonsense", head: "7" });
    await press();
    for (const id of ["registry", "checkpoint", "head"]) {
      expect((await words(`${id}-error`)).length).toBeGreaterThan(10);
      expect(await page.evaluate(`document.getElementById("${id}").getAttribute("aria-invalid")`)).toBe(
        "true",
      );
    }
    expect(await page.evaluate("document.activeElement.id")).toBe("registry");
    await page.chooseFiles("#file", [bundle("good.ndjson", lines)]);
    await type({ registry: tenant.registryId, checkpoint: "", head: "" });
    await press();
    await shown();
    expect(await words("registry-error")).toBe("");
  });

  it("says so where the file can't be read, as one that changed since it was chosen", async () => {
    await page.chooseFiles("#file", [bundle("changing.ndjson", lines)]);
    bundle("changing.ndjson", [...lines, ...lines]);
    await press();
    await page.until(`document.getElementById("status").textContent.startsWith("The file can't be read")`);
    expect(await page.evaluate(`document.getElementById("result").hidden`)).toBe(true);
  });

  it("reads a large file as it comes, shows how far it is, and can be stopped", async () => {
    const long = new TestLog(tenant, "long").fill(15_000);
    await page.chooseFiles("#file", [bundle("long.ndjson", long.lines())]);
    await type({ registry: tenant.registryId });
    await page.evaluate(`(() => {
      window.seen = [];
      const progress = document.getElementById("progress");
      new MutationObserver(() => window.seen.push([progress.value, document.getElementById("status").textContent]))
        .observe(document.getElementById("status"), { childList: true, characterData: true, subtree: true });
    })()`);
    await press();
    await shown();
    expect(await words("verdict")).toBe("Intact");
    const seen = await page.evaluate<[number, string][]>("window.seen");
    const values = seen.map(([value]) => value);
    expect(new Set(values).size).toBeGreaterThan(3);
    expect(values).toEqual([...values].sort((a, b) => a - b));
    expect(seen.some(([, text]) => /^[0-9.]+ MB of [0-9.]+ MB read, 10000 entries checked$/.test(text))).toBe(
      true,
    );
    await press();
    await page.until(`document.getElementById("progress").value > 0`);
    await page.evaluate(`document.getElementById("stop").click()`);
    await page.until(`document.getElementById("running").hidden`);
    expect(await words("status")).toBe("Stopped: nothing was verified.");
    expect(await page.evaluate(`document.getElementById("result").hidden`)).toBe(true);
  });

  it("asks for nothing from outside, and is forbidden to", async () => {
    await verify(lines, { registry: tenant.registryId });
    const urls = page.events
      .filter(({ method }) => method === "Network.requestWillBeSent")
      .map(({ params }) => (params.request as { url: string }).url);
    expect(urls).toEqual([`file://${join(folder, "page.html")}`]);
    expect(
      page.events.filter(({ method }) => method === "Log.entryAdded" || method === "Runtime.exceptionThrown"),
    ).toEqual([]);
    const answer = await page.evaluate<string>(
      `fetch("http://127.0.0.1:9/").then(() => "connected", (error) => String(error))`,
    );
    expect(answer).toContain("TypeError");
    const violated = page.events.some(({ params }) =>
      JSON.stringify(params).includes("Content Security Policy"),
    );
    expect(violated).toBe(true);
  });

  it("can be used without seeing it: language, title, names of all controls, and the verdict gets the focus", async () => {
    await verify(lines, { registry: tenant.registryId });
    expect(await page.evaluate("document.documentElement.lang")).toBe("en");
    expect(await page.evaluate("document.title")).toBe("Verify a Runseal bundle");
    expect(await page.evaluate("document.activeElement.id")).toBe("verdict");
    const { nodes } = (await page.send("Accessibility.getFullAXTree")) as unknown as {
      nodes: { ignored: boolean; role?: { value: string }; name?: { value: string } }[];
    };
    const named = (role: string) =>
      nodes
        .filter((node) => !node.ignored && node.role?.value === role)
        .map((node) => node.name?.value ?? "");
    expect(named("textbox")).toEqual(["Registry id", "Checkpoint", "Head (SEQ:HASH)"]);
    const buttons = named("button");
    expect(buttons).toContain("Verify");
    expect(buttons.every((name) => name !== "")).toBe(true);
    expect(buttons.some((name) => name.startsWith("Bundle"))).toBe(true);
    expect(named("heading")[0]).toBe("Verify a Runseal bundle");
    expect(named("heading")).toContain("Intact");
    expect(named("status").length).toBe(1);
  });
});
