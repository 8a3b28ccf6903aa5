import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeCodePlugin } from '../../daemons/workflow/support/code.ts';
import { type Ledger, startLedger } from '../../daemons/workflow/support/ledger.ts';
import type { Random } from '../../support/random.ts';
import { definitions } from './definitions.ts';
import { functions } from './functions.ts';

const SLOWEST_ANSWER_MS = 20;
/** Answers that ask for another try, before the one that is wanted. */
const REFUSALS = 2;

/**
 * The outside of all runs. `effects/<run>/<name>` has an effect once for each key; `draw` answers another id each time;
 * `unsteady`, `busy` and `refused` answer 503 and 429 twice, and 400 always.
 */
export async function startOutside(random: Random): Promise<Ledger> {
  const ledger = await startLedger();
  let drawn = 0;
  const answers: Record<string, (nth: number) => number> = {
    draw: () => 200,
    effects: () => 200,
    unsteady: (nth) => (nth > REFUSALS ? 200 : 503),
    busy: (nth) => (nth > REFUSALS ? 200 : 429),
    refused: () => 400,
  };
  for (const [name, statusOf] of Object.entries(answers))
    ledger.answer(name, (_, response, nth) => {
      const body = JSON.stringify({ id: `${++drawn}` });
      response.writeHead(statusOf(nth), { 'content-type': 'application/json' });
      setTimeout(() => response.end(body), random() * SLOWEST_ANSWER_MS);
    });
  return ledger;
}

/** Writes the workflows of all kinds into a project. */
export async function writeKinds(projectDir: string, url: string): Promise<void> {
  const folder = join(projectDir, 'workflows');
  await mkdir(folder, { recursive: true });
  for (const definition of definitions(url))
    await writeFile(join(folder, `${definition.id}.yaml`), JSON.stringify(definition));
  await writeCodePlugin(projectDir, functions(url), {
    commands: ['effect', 'unsteady'].map((id) => ({ id, handler: `flows.js#${id}` })),
    permissions: { network: [new URL(url).host], platform: { workflows: true } },
  });
}

/** What lets the runs reach the outside. */
export const REACH_OUTSIDE = { httpAllow: ['127.0.0.1'] };
