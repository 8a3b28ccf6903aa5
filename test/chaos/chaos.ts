import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import { getRun, listRunSteps, listRuns, type ReplyOf } from '../../src/contracts/index.ts';
import { tempDir } from '../support/daemon.ts';
import { type Effects, startEffects } from './effects.ts';
import { seededRandom } from './random.ts';
import { MortalService } from './service.ts';
import { type Kind, kindOf, writeWorkflows } from './workflows.ts';

export interface ChaosOptions {
  seed: number;
  runs: number;
  kills: number;
  /** The longest that the service lives, once it listens. */
  longestLifeMs: number;
}

interface Started {
  id: string;
  kind: Kind;
  isCancelled: boolean;
}

type Run = ReplyOf<typeof listRuns>['items'][number];

const SHORTEST_LIFE_MS = 150;
const CANCELLED_SHARE = 0.12;
const SETTLE_MS = 180_000;
const UNFINISHED = ['queued', 'running', 'waiting', 'interrupted', 'cancelling'] as const;

/**
 * Starts runs of every kind, signals and cancels them at random while the service is killed again and again, then holds
 * what became of them against what had to. The default config: also `poisonAfter`.
 */
export async function runChaos(options: ChaosOptions): Promise<void> {
  const { seed, runs, kills, longestLifeMs } = options;
  console.info(`chaos: SVC_TEST_SEED=${seed}, ${runs} runs, ${kills} kills`);
  const random = seededRandom(seed);
  const effects = await startEffects(seededRandom(seed + 1));
  const dataDir = await tempDir();
  await writeWorkflows(dataDir, effects.url);
  const service = new MortalService(dataDir, { workflow: { httpAllow: ['127.0.0.1'] } });
  await service.ready();

  const started: Started[] = [];
  const tasks: Array<Promise<void>> = [];
  // The first failure ends the test, though nobody awaits its task yet.
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});
  for (let kill = 0; kill < kills; kill++) {
    const lifeMs = SHORTEST_LIFE_MS + random() * (longestLifeMs - SHORTEST_LIFE_MS);
    const upTo = Math.round((runs * (kill + 1)) / kills);
    for (let place = Math.round((runs * kill) / kills); place < upTo; place++)
      tasks.push(playRun(service, started, { place, random, lifeMs }).catch(failed.reject));
    await Promise.race([pause(lifeMs), failed.promise]);
    await service.kill();
  }
  await Promise.race([Promise.all(tasks), failed.promise]);
  await allEnded(service);
  const all = await allRuns(service);
  judge(started, all, effects);
  await judgeAttempts(service, all);
  console.info(`chaos: ${all.length} runs, ${effects.keys.size} effects, ${effects.requests} requests`);
}

/** Starts one run at some time of the service's life, and does to it what its kind and chance want. */
async function playRun(
  service: MortalService,
  started: Started[],
  { place, random, lifeMs }: { place: number; random: () => number; lifeMs: number },
): Promise<void> {
  const kind = kindOf(place, random);
  const isCancelled = random() < CANCELLED_SHARE;
  const delays = [random() * lifeMs, random() * 2000, random() * 2000] as const;
  await pause(delays[0]);
  const id = await service.start(kind.workflowId, kind.input, `chaos-${place}`);
  started.push({ id, kind, isCancelled });
  const signal = async (): Promise<void> => {
    await pause(delays[1]);
    await service.signal(id, 'go');
  };
  const cancel = async (): Promise<void> => {
    await pause(delays[2]);
    await service.cancel(id);
  };
  await Promise.all([kind.isGated ? signal() : undefined, isCancelled ? cancel() : undefined]);
}

async function listed(service: MortalService, query: object): Promise<Run[]> {
  const found: Run[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await service.call(listRuns, {
      query: { ...query, limit: 1000, ...(cursor ? { cursor } : {}) } as never,
    });
    found.push(...page.items);
    cursor = page.nextCursor;
  }
  return found;
}

const allRuns = (service: MortalService): Promise<Run[]> => listed(service, {});

/** Throws with what the runs that are stuck wait for. */
async function allEnded(service: MortalService): Promise<void> {
  const until = performance.now() + SETTLE_MS;
  for (;;) {
    const left = (await Promise.all(UNFINISHED.map((status) => listed(service, { status })))).flat();
    if (left.length === 0) return;
    if (performance.now() > until) throw new Error(`Stuck: ${await Promise.all(left.slice(0, 5).map(told))}`);
    await pause(250);
  }

  async function told({ id, workflowId, status }: Run): Promise<string> {
    const { items } = await service.call(listRunSteps, { params: { runId: id as never } });
    const steps = items.map((step) => `${step.id} ${step.status} ${JSON.stringify(step.waitingFor)}`);
    return `${workflowId} ${id} ${status}: ${steps.join('; ')}\n`;
  }
}

/** What a run came to, as far as it is wrong. */
function faultsOf(
  { id, kind, isCancelled }: Started,
  run: Run | undefined,
  children: Run[],
  had: string[],
): string[] {
  if (!run) return [`${kind.workflowId} ${id} is lost`];
  const what = `${kind.workflowId} ${id} (${JSON.stringify(kind.input)})`;
  if (run.error?.details.reason === 'poison') return [`${what} was given up as poison`];
  if (isCancelled && run.status === 'cancelled') {
    const acts = had.filter((name) => !name.startsWith('undo-'));
    const isSaga = kind.workflowId === 'saga' || kind.workflowId === 'parallel';
    const left = isSaga ? acts.filter((name) => !had.includes(`undo-${name}`)) : [];
    return left.length === 0 ? [] : [`${what} was cancelled, and not undone: ${left.join(', ')}`];
  }
  const faults: string[] = [];
  if (run.status !== 'succeeded') faults.push(`${what} is ${run.status}: ${JSON.stringify(run.error)}`);
  else if (JSON.stringify(run.output) !== JSON.stringify(kind.output))
    faults.push(`${what} came to ${JSON.stringify(run.output)}`);
  if (had.toSorted().join() !== kind.effects.toSorted().join()) faults.push(`${what} had the effects ${had}`);
  if (children.length !== kind.children) faults.push(`${what} has ${children.length} children`);
  return faults;
}

function judge(started: Started[], all: Run[], effects: Effects): void {
  const byId = new Map<string, Run>(all.map((run) => [run.id, run]));
  const children = Map.groupBy(all, ({ parentRunId }) => parentRunId ?? '');
  const faults = started.flatMap((one) =>
    faultsOf(one, byId.get(one.id), children.get(one.id) ?? [], effects.of(one.id)),
  );
  for (const [name, keys] of effects.keys)
    if (keys.size !== 1) faults.push(`${name} happened ${keys.size} times: ${[...keys]}`);
  const known = new Set<string>(started.map(({ id }) => id));
  for (const { id, parentRunId } of all)
    if (!known.has(id) && !known.has(parentRunId ?? '')) faults.push(`${id} was started twice`);
  expect(faults).toEqual([]);
}

/** A step whose end was on record is not run again. */
async function judgeAttempts(service: MortalService, all: Run[]): Promise<void> {
  for (const { id } of all) {
    const { items } = await service.call(listRunSteps, { params: { runId: id } });
    for (const { id: step, history } of items)
      expect(history.filter(({ status }) => status === 'succeeded').length, `${id} ${step}`).toBeLessThan(2);
    const { jobs, status } = await service.call(getRun, { params: { runId: id } });
    const open = jobs.filter((job) => UNFINISHED.includes(job.status as never) || job.status === 'pending');
    expect(open, `parts of ${id}, which is ${status}`).toEqual([]);
  }
}
