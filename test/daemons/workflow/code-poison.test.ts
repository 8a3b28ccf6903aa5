import { expect, onTestFinished, test } from 'vitest';
import { tempDir } from '../../support/daemon.ts';
import { type BareEngine, openEngine } from './support/engine.ts';

/** A function that is queued for a process, or whose handler has begun; neither comes to an end. */
const WORKFLOWS = ['queued', 'begun'].map((id) => ({
  source: 'code',
  pluginId: 'code',
  definition: { id, handler: `flows.js#${id}` },
}));

interface Boot extends BareEngine {
  /** Workflows whose pass was handed over. */
  called: string[];
  /** Whether handlers were to begin only once that was durable. */
  marked: boolean[];
}

/** The next service on the folder; the one before is dead of a fault, as far as it knows. */
async function boot(dataDir: string): Promise<Boot> {
  const called: string[] = [];
  const marked: boolean[] = [];
  const it = await openEngine({
    dataDir,
    exclusive: true,
    hadFault: true,
    kinds: [],
    async runReplay({ run, context }, replays) {
      called.push(run.workflowId);
      if (run.workflowId === 'begun') {
        marked.push(context.marksBegin === true);
        await replays.require(run.id, context.token).begin();
      }
      return new Promise(() => {});
    },
  });
  onTestFinished(() => it.close());
  it.definitions.register(WORKFLOWS);
  await it.engine.start();
  return { ...it, called, marked };
}

test('of functions in flight at three crashes, only those whose handler had begun are suspects, not queued ones', async () => {
  const dataDir = await tempDir();
  const who = { tenantId: 'default', hostId: 'test', requestId: 'r', traceId: 't' };
  let it = await boot(dataDir);
  const ids: string[] = [];
  for (const id of ['queued', 'begun']) {
    const workflow = it.definitions.require(id);
    ids.push((await it.starter.start({ kind: 'workflow', workflow, input: {}, trigger: 'manual' }, who)).id);
  }
  const find = async () => Promise.all(ids.map(async (id) => (await it.store.runs.find(null, id))!));
  const crashes = async () => (await find()).map((run) => run.crashes);
  for (let round = 0; round < 3; round++) {
    expect(await crashes()).toEqual([0, round]);
    await expect.poll(() => it.called.length).toBe(2);
    await expect.poll(async () => (await find()).map((run) => run.inFlight)).toEqual([false, true]);
    // What this boot finds in flight may have ended the one before: it begins once that is on disk.
    expect(it.marked).toEqual([round > 0]);
    it = await boot(dataDir);
  }
  const [queued, begun] = await find();
  expect(begun).toMatchObject({ status: 'failed', error: expect.stringContaining('"poison"') });
  expect(queued).toMatchObject({ crashes: 0 });
  await expect.poll(() => it.called).toEqual(['queued']);
}, 60_000);
