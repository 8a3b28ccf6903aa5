import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { listRuns } from '../../../src/contracts/index.ts';
import { seconds } from '../../../src/kit/time/duration.ts';
import { tempDir } from '../../support/daemon.ts';
import { startCode } from './support/code.ts';
import { LEDGER_CONFIG, startLedger } from './support/ledger.ts';
import { startProcess } from './support/process.ts';
import { cel, startWorkflow, type TestWorkflow } from './support/workflow.ts';

/** A child that ends as the ledger answers it. */
const asking = (url: string) => ({
  id: 'asking',
  outputs: { body: cel('jobs.main.outputs.body') },
  jobs: {
    main: {
      outputs: { body: cel('steps.ask.output.body') },
      steps: [{ id: 'ask', uses: 'http', with: { method: 'POST', url }, idempotent: true }],
    },
  },
});

async function startWithChild() {
  const ledger = await startLedger();
  const it = await startWorkflow({ config: LEDGER_CONFIG });
  const definition = asking(`${ledger.url}/child`);
  it.services.definitions.register([{ source: 'test', definition }]);
  return { it, ledger };
}

async function moveUntil(it: TestWorkflow, id: string, ...statuses: string[]) {
  for (let round = 0; round < 400; round++) {
    const run = await it.run(id);
    if (statuses.includes(run.status)) return run;
    it.clock.advance(500);
    await it.services.engine.tick();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error(`the run is still ${(await it.run(id)).status}: ${JSON.stringify(await it.steps(id))}`);
}

const RETRY = { maxAttempts: 3, initialMs: 1000, jitter: 'none' };

describe('retry of a step that runs a workflow', () => {
  test('starts another child after each failed one', async () => {
    const { it, ledger } = await startWithChild();
    ledger.answer('child', (_, response, nth) => response.writeHead(nth < 3 ? 500 : 200).end('fine'));
    const id = await it.start({
      steps: [{ id: 'c', uses: 'workflow', with: { id: 'asking' }, retry: RETRY }],
    });
    await moveUntil(it, id, 'succeeded', 'failed');
    const step = await it.step(id, 'main.c');
    expect(step).toMatchObject({ status: 'succeeded', attempts: 3, output: { body: 'fine' } });
    const seen = (await it.run(id)).children.map(({ status, stepId, workflowId }) => [
      status,
      stepId,
      workflowId,
    ]);
    expect(seen).toEqual(['failed', 'failed', 'succeeded'].map((status) => [status, 'main.c', 'asking']));
    expect(step.history.map(({ status, errorClass }) => [status, errorClass])).toEqual([
      ['failed', 'code'],
      ['failed', 'code'],
      ['succeeded', null],
    ]);
    const children = new Set(step.history.map(({ error }) => error?.details.runId));
    expect(children.size).toBe(3);
    expect(ledger.count('child')).toBe(3);
  });

  test('ends with the policy, and is not done without one or for a cancelled child', async () => {
    const { it, ledger } = await startWithChild();
    ledger.answer('child', (_, response) => response.writeHead(500).end());
    const step = { id: 'c', uses: 'workflow', with: { id: 'asking' } };
    const tried = await it.start({ steps: [{ ...step, retry: RETRY }] });
    await moveUntil(it, tried, 'failed');
    expect(ledger.count('child')).toBe(3);
    const once = await it.start({ steps: [step] });
    await moveUntil(it, once, 'failed');
    expect(ledger.count('child')).toBe(4);

    ledger.answer('child', () => {});
    const cancelled = await it.start({ steps: [{ ...step, retry: RETRY }] });
    await it.until(cancelled, 'waiting');
    await expect.poll(() => ledger.count('child')).toBe(5);
    const { runId } = (await it.step(cancelled, 'main.c')).waitingFor!;
    const child = (await it.services.runs.get('default', runId!)).id;
    await it.services.runs.cancel('default', child);
    await moveUntil(it, cancelled, 'failed');
    expect(ledger.count('child')).toBe(5);
  });

  test('holds in code too, and is left to its function at the end', async () => {
    const ledger = await startLedger();
    ledger.answer('child', (_, response, nth) => response.writeHead(nth < 3 ? 500 : 200).end('fine'));
    const it = await startCode(
      `
      export const parent = defineWorkflow({ id: 'parent',
        run: (ctx) => ctx.runWorkflow('asking', {}, { retry: ${JSON.stringify(RETRY)} }) });`,
      {
        permissions: { platform: { workflows: true } },
        workflows: [{ id: 'parent', handler: 'flows.js#parent' }, asking(`${ledger.url}/child`)],
      },
      LEDGER_CONFIG,
    );
    const id = await it.begin('parent');
    const run = await it.moveUntil(id, seconds(1), 'succeeded', 'failed');
    expect(run).toMatchObject({ status: 'succeeded', output: { body: 'fine' } });
    const [step] = await it.steps(id);
    expect(step).toMatchObject({ attempts: 3 });
    expect((await it.run(id)).children.map(({ stepId }) => stepId)).toEqual([step!.id, step!.id, step!.id]);
  });

  test('finds its started child after a crash before the next attempt was recorded', async () => {
    const ledger = await startLedger();
    const dataDir = await tempDir();
    await mkdir(join(dataDir, 'workflows'));
    await writeFile(join(dataDir, 'workflows/asking.yaml'), JSON.stringify(asking(`${ledger.url}/child`)));
    ledger.answer('child', (_, response, nth) => {
      if (nth === 1) response.writeHead(500).end();
    });
    const first = await startProcess(dataDir, LEDGER_CONFIG);
    const retry = { ...RETRY, initialMs: 1 };
    const id = await first.start({ steps: [{ id: 'c', uses: 'workflow', with: { id: 'asking' }, retry }] });
    await expect.poll(() => ledger.count('child')).toBe(2);
    await first.kill();
    // What a service has written that dies between the start of a child and the note of it in its parent.
    const file = new Sqlite(join(dataDir, 'workflow.db'));
    const { fence } = file.prepare('select max(fence) as fence from boot').get() as { fence: number };
    file.prepare("update run set status = 'running', fence = ? where id = ?").run(fence, id);
    const parent = 'run_seq = (select seq from run where id = ?)';
    file.prepare(`update step set status = 'running', wait = null where ${parent}`).run(id);
    file.prepare(`update job set status = 'running' where ${parent}`).run(id);
    file.close();
    ledger.answer('child', (_, response) => response.end('fine'));
    const second = await startProcess(dataDir, LEDGER_CONFIG);
    await expect.poll(async () => (await second.run(id)).status, { timeout: 30_000 }).toBe('succeeded');
    const { items } = await second.call(listRuns, { query: { workflowId: 'asking', limit: 10 } as never });
    expect(items.map(({ status }) => status)).toEqual(['succeeded', 'failed']);
  }, 60_000);
});
