/// <reference types="@cloudflare/vitest-plugin/types" />

/** What `env` of "cloudflare:workers" and "cloudflare:test" holds in tests that run inside workerd. */
declare namespace Cloudflare {
  interface Env extends TestEnv {}
  interface GlobalProps {
    mainModule: typeof import("../../workers/index.ts");
  }
}

type TestEnv = import("../../workers/env.ts").Env & {
  readonly TEST_MIGRATIONS: import("cloudflare:test").D1Migration[];
};
