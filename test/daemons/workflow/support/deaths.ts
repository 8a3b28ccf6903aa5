import { setTimeout as pause } from 'node:timers/promises';
import { type Random, shuffled } from '../../../support/random.ts';

/** What dies again and again under its callers. */
export interface Mortal<Way extends string> {
  /** Resolves once it is back. */
  die(way: Way): Promise<void>;
}

/** One death, so long after the one before was made good. */
export interface Death<Way extends string> {
  way: Way;
  afterMs: number;
}

export interface Lives {
  count: number;
  shortestMs: number;
  longestMs: number;
}

/** Every way once in random order, then as often as in `rest`, until there are so many. */
export function planDeaths<Way extends string>(
  random: Random,
  { count, shortestMs, longestMs }: Lives,
  ways: { all: readonly Way[]; rest: readonly Way[] },
): Death<Way>[] {
  const planned: Way[] = shuffled(random, ways.all);
  while (planned.length < count) planned.push(...shuffled(random, ways.rest));
  return planned
    .slice(0, count)
    .map((way) => ({ way, afterMs: Math.round(shortestMs + random() * (longestMs - shortestMs)) }));
}

/** The line to repeat a test by. */
export function announce(test: string, seed: number, deaths: readonly Death<string>[]): void {
  const counts = Map.groupBy(deaths, ({ way }) => way);
  const told = [...counts].map(([way, { length }]) => `${length} ${way}`).join(', ');
  console.info(`${test}: SVC_TEST_SEED=${seed}, ${deaths.length} deaths (${told})`);
}

/**
 * Lets it die as planned; `life` begins what is to happen before each death, which may go on after it. Its first failure ends
 * the deaths. Resolves once all that was begun has ended.
 */
export async function underDeaths<Way extends string>(
  mortal: Mortal<Way>,
  deaths: readonly Death<Way>[],
  life: (place: number, lengthMs: number) => Promise<unknown> = async () => {},
): Promise<void> {
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});
  const begun: Array<Promise<unknown>> = [];
  for (const [place, { way, afterMs }] of deaths.entries()) {
    begun.push(life(place, afterMs).catch(failed.reject));
    await Promise.race([pause(afterMs), failed.promise]);
    await Promise.race([mortal.die(way), failed.promise]);
  }
  await Promise.race([Promise.all(begun), failed.promise]);
}
