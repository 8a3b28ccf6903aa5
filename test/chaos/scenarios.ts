import { expect } from 'vitest';
import { announce, type Death, type Mortal } from '../daemons/workflow/support/deaths.ts';
import { MortalService, planServiceDeaths } from '../daemons/workflow/support/mortal-service.ts';
import type { RetryingClient } from '../daemons/workflow/support/retrying-client.ts';
import { tempDir } from '../support/daemon.ts';
import { type Random, seededRandom, seedOf } from '../support/random.ts';
import { Chaos } from './chaos.ts';
import { REACH_OUTSIDE, startOutside, writeKinds } from './kinds/project.ts';
import { MortalPlatform, planPlatformDeaths } from './mortal-platform.ts';

interface Size {
  runs: number;
  deaths: number;
}

/** All runs of a wave end before the next: only so long do crashes count for one. */
const LONGEST_WAVE = 20;

/** The workflow service alone, with the config of a user: also `poisonAfter`. */
export async function serviceChaos(size: Size): Promise<void> {
  const config = { workflow: REACH_OUTSIDE };
  await playWaves('chaos', size, {
    begin: async (url, random) => {
      const dataDir = await tempDir();
      await writeKinds(dataDir, url);
      return MortalService.start({ dataDir, config, random });
    },
    plan: (random, count) => planServiceDeaths(random, { count, shortestMs: 150, longestMs: 3000 }),
  });
}

/** `svc up` with its supervisor; starts, signals and cancels come through its gateway. */
export async function platformChaos(size: Size): Promise<void> {
  await playWaves('chaos of a platform', size, {
    begin: (url) => MortalPlatform.start((folder) => writeKinds(folder, url)),
    plan: (random, count) => planPlatformDeaths(random, { count, shortestMs: 500, longestMs: 3000 }),
  });
}

interface Scenario<Way extends string> {
  /** With runs that have their effects at the URL. */
  begin(url: string, random: Random): Promise<Mortal<Way> & { client: RetryingClient }>;
  plan(random: Random, count: number): Death<Way>[];
}

async function playWaves<Way extends string>(
  name: string,
  { runs, deaths }: Size,
  { begin, plan }: Scenario<Way>,
): Promise<void> {
  const seed = seedOf(process.env);
  const random = seededRandom(seed);
  const waves = Math.ceil(deaths / LONGEST_WAVE);
  const shareOf = (count: number, wave: number): number =>
    Math.round((count * (wave + 1)) / waves) - Math.round((count * wave) / waves);
  const planned = Array.from({ length: waves }, (_, wave) => plan(random, shareOf(deaths, wave)));
  announce(name, seed, planned.flat());
  const ledger = await startOutside(seededRandom(seed + 1));
  const mortal = await begin(ledger.url, seededRandom(seed + 2));
  const chaos = new Chaos(mortal, { random, ledger });
  for (const [wave, its] of planned.entries()) await chaos.wave(shareOf(runs, wave), its);
  expect(await chaos.faults(), `SVC_TEST_SEED=${seed}`).toEqual([]);
}
