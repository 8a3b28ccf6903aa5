import { onTestFinished } from 'vitest';
import type { Clock } from '../../../src/kit/time/clock.ts';
import { type ManualClock, manualClock } from '../../../src/kit/time/clock.ts';
import { tempDir } from '../../support/daemon.ts';

/** Opens one driver's implementation of a port. Two that are opened on one `dataDir` share their data. */
export type OpenDriver<Port> = (options: { dataDir: string; clock: Clock }) => Promise<Opened<Port>>;

export interface Opened<Port> {
  port: Port;
  close(): Promise<void>;
}

export interface DriverBench<Port> {
  port: Port;
  clock: ManualClock;
  /** Closes and opens again: what a restart keeps. */
  reopen(): Promise<Port>;
  /** A second opener of the same data, as another process of the same daemon would be. */
  second(): Promise<Port>;
}

/** A fresh store with a clock that stands still; closed when the test ends. */
export async function openFresh<Port>(open: OpenDriver<Port>): Promise<DriverBench<Port>> {
  const dataDir = await tempDir();
  const clock = manualClock();
  async function openOne(): Promise<Opened<Port>> {
    const opened = await open({ dataDir, clock });
    onTestFinished(() => opened.close());
    return opened;
  }
  let first = await openOne();
  return {
    port: first.port,
    clock,
    async reopen() {
      await first.close();
      first = await openOne();
      return first.port;
    },
    second: async () => (await openOne()).port,
  };
}

/** Runs `make` for 0 … count-1 at once. */
export function times<T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => make(index)));
}
