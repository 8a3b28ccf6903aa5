import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { decideStep, listRuns, postCancelRun, sendSignal } from '../../../src/contracts/index.ts';
import { hours, seconds } from '../../../src/kit/time/duration.ts';
import { tempDir } from '../../support/daemon.ts';
import { LEDGER_CONFIG, startLedger } from './support/ledger.ts';
import { type DaemonProcess, startProcess } from './support/process.ts';

const POLL = { timeout: 20_000, interval: 20 };
const CONFIG = { ...LEDGER_CONFIG, execution: { worker: { sandbox: 'permission' } } };
const ALWAYS = { if: 'always()' };
const signal = (name: string, more: object = {}) => ({ id: name, uses: 'signal', with: { name }, ...more });
const CHILD = { id: 'child', uses: 'workflow', with: { id: 'child' } };

/** A service that is killed and started again, on a project with a workflow `child`, whose clean-up waits for `undone`. */
async function setUp() {
  const dataDir = await tempDir();
  await mkdir(join(dataDir, 'workflows'));
  const child = { id: 'child', jobs: { main: { steps: [signal('go'), signal('undone', ALWAYS)] } } };
  await writeFile(join(dataDir, 'workflows/child.yaml'), JSON.stringify(child));
  let daemon = await startProcess(dataDir, CONFIG);
  const at = (): DaemonProcess => daemon;
  return {
    dataDir,
    at,
    /** Kills the service, changes what it has written, and starts it again. */
    async killed(change: (file: Sqlite.Database) => void = () => {}) {
      await daemon.kill();
      const file = new Sqlite(join(dataDir, 'workflow.db'));
      change(file);
      file.close();
      daemon = await startProcess(dataDir, CONFIG);
    },
    status: async (id: string) => (await daemon.run(id)).status,
    step: async (id: string, step: string) => (await daemon.steps(id)).find((one) => one.id === step)!,
    cancel: (id: string) => daemon.call(postCancelRun, { params: { runId: id as never } }),
    send: (id: string, name: string) =>
      daemon.call(sendSignal, { params: { runId: id as never, name }, body: {} as never }),
  };
}

/** As though the clean-ups had gone on, or waited, for so much longer before the kill. */
function age(file: Sqlite.Database, ms: number): void {
  const times = 'ending_at = ending_at - :ms, ending_held_at = ending_held_at - :ms';
  for (const table of ['run', 'job']) file.prepare(`update ${table} set ${times}`).run({ ms });
  file.prepare('update run set wake_at = wake_at - :ms').run({ ms });
}

test('after kill -9 the clean-up of a job has its remaining time', async () => {
  const { at, killed, step } = await setUp();
  const id = await at().start({
    jobs: { a: { timeoutMs: 1, steps: [signal('go'), signal('undo', ALWAYS)] } },
  });
  const undo = async () => (await step(id, 'a.undo')).status;
  await expect.poll(undo, POLL).toBe('waiting');
  await killed();
  expect(await undo()).toBe('waiting');
  await killed((file) => age(file, seconds(59)));
  await expect.poll(async () => (await at().run(id)).jobs[0]?.status, POLL).toBe('timed_out');
}, 90_000);

test('after kill -9 the clean-up of a job waits for a decision, which does not count towards its time', async () => {
  const { at, killed, step } = await setUp();
  const ledger = await startLedger();
  ledger.answer('undo', (_, response, nth) => {
    if (nth > 1) response.end('{}');
  });
  const undo = { id: 'undo', uses: 'http', with: { method: 'POST', url: `${ledger.url}/undo` }, ...ALWAYS };
  const id = await at().start({ jobs: { a: { timeoutMs: 1, steps: [signal('go'), undo] } } });
  await expect.poll(() => ledger.count('undo'), POLL).toBe(1);
  await expect.poll(async () => (await step(id, 'a.undo')).startedAt, POLL).not.toBeNull();
  await killed();
  const waitingFor = async () => (await step(id, 'a.undo')).waitingFor?.for;
  await expect.poll(waitingFor, POLL).toBe('decision');
  await expect.poll(async () => (await at().run(id)).waitingReason, POLL).toBe('decision');
  await killed((file) => age(file, hours(1)));
  expect(await waitingFor()).toBe('decision');
  const decision = { params: { runId: id as never, stepId: 'a.undo' }, body: { action: 'retry' } as never };
  await at().call(decideStep, decision);
  await expect.poll(async () => (await at().run(id)).jobs[0]?.status, POLL).toBe('timed_out');
  expect((await step(id, 'a.undo')).status).toBe('succeeded');
}, 90_000);

test('after kill -9 a run waits for the clean-up of its child, then has its whole time', async () => {
  const { at, killed, step, status, cancel, send } = await setUp();
  const ledger = await startLedger();
  const own = { id: 'own', uses: 'http', with: { url: `${ledger.url}/own` }, ...ALWAYS };
  const id = await at().start({ steps: [CHILD, own] });
  await expect.poll(() => status(id), POLL).toBe('waiting');
  const child = (await step(id, 'main.child')).waitingFor!.runId!;
  await expect.poll(() => status(child), POLL).toBe('waiting');
  await cancel(id);
  const undone = async () => (await step(child, 'main.undone')).status;
  await expect.poll(undone, POLL).toBe('waiting');
  await killed();
  await killed((file) =>
    file
      .prepare(
        'update run set ending_at = ending_at - 3600000, ending_held_at = ending_held_at - 3600000 where id = ?',
      )
      .run(id),
  );
  await expect.poll(undone, POLL).toBe('waiting');
  expect(await status(id)).toBe('cancelling');
  expect(ledger.count('own')).toBe(0);
  await send(child, 'undone');
  await expect.poll(() => status(id), POLL).toBe('cancelled');
  expect((await at().run(id)).error).toBeNull();
  expect(ledger.count('own')).toBe(1);
}, 90_000);

test('after kill -9 a run without a clean-up of its own ends after its child', async () => {
  const { at, killed, step, status, cancel, send } = await setUp();
  const id = await at().start({ steps: [CHILD] });
  await expect.poll(() => status(id), POLL).toBe('waiting');
  const child = (await step(id, 'main.child')).waitingFor!.runId!;
  await expect.poll(() => status(child), POLL).toBe('waiting');
  await killed();
  expect(await cancel(id)).toEqual({ cancelled: true, status: 'cancelling' });
  await killed();
  const undone = async () => (await step(child, 'main.undone')).status;
  await expect.poll(undone, POLL).toBe('waiting');
  expect(await status(id)).toBe('cancelling');
  await send(child, 'undone');
  await expect.poll(() => status(id), POLL).toBe('cancelled');
  expect(await status(child)).toBe('cancelled');
}, 90_000);

test('a child not recorded by its parent before a kill -9 is cancelled with the parent, and ends first', async () => {
  const { at, killed, step, status, send } = await setUp();
  const id = await at().start({ steps: [CHILD] });
  await expect.poll(() => status(id), POLL).toBe('waiting');
  const child = (await step(id, 'main.child')).waitingFor!.runId!;
  await expect.poll(() => status(child), POLL).toBe('waiting');
  // What a service has written that is killed after a cancel, between the start of a child and the note of it.
  await killed((file) => {
    const { fence } = file.prepare('select max(fence) as fence from boot').get() as { fence: number };
    const cancelled = "status = 'cancelling', ending = 'cancelled', fence = ?";
    file.prepare(`update run set ${cancelled} where id = ?`).run(fence, id);
    const parent = 'run_seq = (select seq from run where id = ?)';
    file.prepare(`update step set status = 'running', wait = null where ${parent}`).run(id);
    file.prepare(`update job set status = 'running' where ${parent}`).run(id);
  });
  await expect.poll(async () => (await step(child, 'main.undone')).status, POLL).toBe('waiting');
  await expect.poll(() => at().run(id), POLL).toMatchObject({ status: 'cancelling', waitingReason: 'child' });
  await killed();
  await send(child, 'undone');
  await expect.poll(() => status(id), POLL).toBe('cancelled');
  const { items } = await at().call(listRuns, { query: { workflowId: 'child', limit: 10 } as never });
  expect(items.map((run) => run.status)).toEqual(['cancelled']);
}, 90_000);

test('after kill -9 a clean-up waits for its plugin, which does not count towards its time', async () => {
  const { dataDir, at, killed, status, step, cancel } = await setUp();
  const folder = join(dataDir, 'plugins/tool');
  await mkdir(folder, { recursive: true });
  const commands = [{ id: 'undo', handler: 'code.js#undo' }];
  const manifest = { schema: 'svc.plugin/3', id: 'tool', version: '1.0.0', commands };
  await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(manifest));
  await writeFile(join(folder, 'package.json'), '{"name": "tool", "version": "1.0.0", "type": "module"}');
  await writeFile(join(folder, 'code.js'), "export const undo = () => 'undone';");
  await killed();
  const id = await at().start({ steps: [signal('go'), { id: 'undo', uses: 'tool/undo', ...ALWAYS }] });
  await expect.poll(() => status(id), POLL).toBe('waiting');
  const aside = join(dataDir, 'aside');
  await rename(folder, aside);
  await killed();
  await cancel(id);
  const waits = { status: 'cancelling', waitingReason: 'plugin' };
  await expect.poll(() => at().run(id), POLL).toMatchObject(waits);
  await killed((file) => age(file, hours(1)));
  await expect.poll(() => at().run(id), POLL).toMatchObject(waits);
  await rename(aside, folder);
  await killed();
  await expect.poll(() => status(id), POLL).toBe('cancelled');
  expect((await at().run(id)).error).toBeNull();
  expect((await step(id, 'main.undo')).output).toBe('undone');
}, 90_000);
