import type { WorkflowRun } from '../../../../src/contracts/index.ts';
import { type Random, seededRandom, seedOf } from '../../../support/random.ts';
import { announce, underDeaths } from './deaths.ts';
import { MortalService, planServiceDeaths } from './mortal-service.ts';
import type { RetryingClient } from './retrying-client.ts';

/** What is drawn from it is the same for the same seed; what a death meets is not. */
export const SEED = seedOf(process.env);
const DEATHS = Number(process.env.SVC_TEST_KILL_RUNS ?? 60) / 10;
export const PLAY_MS = 240_000 + DEATHS * 6000;

/** `steps` of functions: a lost process fails the step that it ran alone, which is to be tried again. */
export const REPEATABLE = JSON.stringify({
  idempotent: true,
  retry: { maxAttempts: 50, initialMs: 10, maxMs: 100, on: ['code', 'server', 'network'] },
});

export interface Play {
  name: string;
  dataDir: string;
  random: Random;
  workflowId: string;
  /** One run with each. */
  inputs: readonly object[];
  /** Done beside the deaths, once. */
  beside?(client: RetryingClient, ids: readonly string[]): Promise<void>;
  /** Done again and again to the runs that have not ended. */
  meanwhile?(client: RetryingClient, left: readonly WorkflowRun[]): Promise<void>;
}

export const playRandom = (): Random => seededRandom(SEED);

/** Starts the runs, and lets the service die in every way until they have ended. The config is the default. */
export async function playUnderDeaths(play: Play): Promise<{ client: RetryingClient; ids: string[] }> {
  const { name, dataDir, random, workflowId, inputs, beside, meanwhile } = play;
  const deaths = planServiceDeaths(random, { count: DEATHS, shortestMs: 300, longestMs: 1800 });
  announce(name, SEED, deaths);
  const service = await MortalService.start({ dataDir, config: {}, random });
  const { client } = service;
  const ids = await Promise.all(
    inputs.map((input, place) => client.start(workflowId, { input, idempotencyKey: `${place}` })),
  );
  await underDeaths(service, deaths, async (life) => {
    if (life > 0) return;
    await Promise.all([beside?.(client, ids), client.allEnded((left) => meanwhile?.(client, left))]);
  });
  return { client, ids };
}
