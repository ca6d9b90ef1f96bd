/**
 * Brings D1 up to date before the tests of a file that runs in workerd.
 *
 * @module
 */
import { applyD1Migrations } from "cloudflare:test";
import { env } from "cloudflare:workers";

await applyD1Migrations(env.DB, env.TEST_MIGRATIONS);
