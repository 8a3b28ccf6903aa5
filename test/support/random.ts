export type Random = () => number;

/** Numbers in [0, 1) that a seed decides: mulberry32. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** `SVC_TEST_SEED`, or a new seed. */
export function seedOf(env: NodeJS.ProcessEnv): number {
  const given = Number(env.SVC_TEST_SEED);
  return Number.isInteger(given) && given > 0 ? given : Math.floor(Math.random() * 2 ** 31) + 1;
}

/** Numbers of a new seed, which is printed: `SVC_TEST_SEED` repeats them. */
export function printedRandom(): Random {
  const seed = seedOf(process.env);
  console.info(`SVC_TEST_SEED=${seed}`);
  return seededRandom(seed);
}

/** A whole number from 0 to below the limit. */
export const below = (random: Random, limit: number): number => Math.floor(random() * limit);

export function shuffled<Item>(random: Random, items: readonly Item[]): Item[] {
  const left = [...items];
  return items.map(() => left.splice(below(random, left.length), 1)[0]!);
}
