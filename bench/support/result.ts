/** What a benchmark prints: rows of one table. */
export interface BenchResult {
  name: string;
  rows: Array<Record<string, string | number>>;
  /** Conditions that a reader of the figures must know. */
  note?: string;
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The value below which `share` (0 to 1) of the values lie. */
export function quantile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function round(value: number, digits = 0): number {
  return Number(value.toFixed(digits));
}
