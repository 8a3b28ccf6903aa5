import type { AdapterName, LlmUsage } from '../../contracts/index.ts';

/** Observer that services use to count adapter calls. */
export interface AdapterWatch {
  called(adapter: AdapterName, method: string, failed: boolean, durationMs: number): void;
  /** Reports the tokens of a model's reply. `cost` is in US dollars, or null if the price is unknown. */
  used(adapter: AdapterName, model: string, usage: LlmUsage, cost: number | null): void;
}

export const unwatched: AdapterWatch = { called: () => {}, used: () => {} };

export interface Timed<Value> {
  value: Value;
  durationMs: number;
}

/** Runs an adapter call, and reports its outcome and duration to the observer. */
export async function watched<Value>(
  watch: AdapterWatch,
  adapter: AdapterName,
  method: string,
  run: () => Promise<Value>,
): Promise<Timed<Value>> {
  const startedAt = performance.now();
  const elapsed = (): number => Math.round((performance.now() - startedAt) * 100) / 100;
  try {
    const value = await run();
    const durationMs = elapsed();
    watch.called(adapter, method, false, durationMs);
    return { value, durationMs };
  } catch (error) {
    watch.called(adapter, method, true, elapsed());
    throw error;
  }
}
