/**
 * Measures two things in turns and prints their ratio: a ratio holds where absolute times depend on the machine.
 *
 * @module
 */

export interface Comparison {
  readonly name: string;
  readonly ours: number;
  readonly floor: number;
  /** Median of the ratios, round by round. */
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Runs both in each round, in changing order; both answer a rate. */
export async function compare(
  name: string,
  rounds: number,
  sides: { ours: (round: number) => Promise<number>; floor: (round: number) => Promise<number> },
): Promise<Comparison> {
  const pairs: { ours: number; floor: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    let ours = 0;
    let floor = 0;
    if (round % 2 === 0) {
      ours = await sides.ours(round);
      floor = await sides.floor(round);
    } else {
      floor = await sides.floor(round);
      ours = await sides.ours(round);
    }
    pairs.push({ ours, floor });
  }
  const ratios = pairs.map((pair) => pair.ours / pair.floor);
  return {
    name,
    ours: median(pairs.map((pair) => pair.ours)),
    floor: median(pairs.map((pair) => pair.floor)),
    ratio: median(ratios),
    low: Math.min(...ratios),
    high: Math.max(...ratios),
  };
}

/** The comparisons as a Markdown table. */
export function table(comparisons: readonly Comparison[]): string {
  const rows = comparisons.map(
    ({ name, ours, floor, ratio, low, high }) =>
      `| ${name} | ${Math.round(ours).toLocaleString("en")} | ${Math.round(floor).toLocaleString("en")} | ${ratio.toFixed(2)} | ${low.toFixed(2)} to ${high.toFixed(2)} |`,
  );
  return ["| what | ours | floor | ratio | spread |", "| --- | --- | --- | --- | --- |", ...rows].join("\n");
}
