/**
 * `npm run bench`: ratios, measured side by side in one run. `--quick` for a short one.
 *
 * @module
 */
import { benchCore } from "./core.ts";
import { benchIngest, benchSingle } from "./ingest.ts";
import { proofTable } from "./proofs.ts";
import { benchRecheck } from "./recheck.ts";
import { startBench } from "./runtime.ts";
import { table } from "./table.ts";
import { benchVerify } from "./verify.ts";

const quick = process.argv.includes("--quick");
const runtime = await startBench();
try {
  const rounds = quick ? 3 : 7;
  const single = await benchSingle(runtime, rounds, quick ? 1000 : 4000);
  const comparisons = [
    ...(await benchIngest(runtime, rounds, quick ? 60 : 150)),
    single.comparison,
    ...(await benchVerify(runtime, rounds, quick ? 3000 : 20_000)),
    ...(await benchCore(rounds, quick ? 50 : 200)),
    ...(await benchRecheck(rounds, quick ? 3000 : 10_000)),
  ];
  console.log([table(comparisons), single.latencies, proofTable(quick ? 100 : 1000)].join("\n\n"));
} finally {
  await runtime.close();
}
