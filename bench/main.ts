/**
 * `npm run bench`: ratios, measured side by side in one run. `--quick` for a short one.
 *
 * @module
 */
import { benchIngest } from "./ingest.ts";
import { startBench } from "./runtime.ts";
import { table } from "./table.ts";
import { benchVerify } from "./verify.ts";

const quick = process.argv.includes("--quick");
const runtime = await startBench();
try {
  const comparisons = [
    await benchIngest(runtime, quick ? 3 : 7, quick ? 60 : 150),
    ...(await benchVerify(runtime, quick ? 3 : 7, quick ? 3000 : 20_000)),
  ];
  console.log(table(comparisons));
} finally {
  await runtime.close();
}
