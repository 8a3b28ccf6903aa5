import { describe, expect, onTestFinished, test } from 'vitest';
import { tempDir } from '../../support/daemon.ts';
import { LEDGER_CONFIG, type Ledger, startLedger } from './support/ledger.ts';
import { type DaemonProcess, startProcess } from './support/process.ts';
import { asDefinition, startWorkflow, type TestWorkflow } from './support/workflow.ts';

/** Runs in memory at a time, the share of one tenant, and more runs than that. */
const SLOTS = 100;
const SHARE = 75;
const MANY = 250;
const SLEEP_MS = 60_000;
/** Listing many runs takes time from those that are to get on. */
const POLL = { interval: 200 };

interface Crowd {
  it: TestWorkflow;
  ledger: Ledger;
  /** How many runs of tenant `a` have the status. */
  countOf(status: string): Promise<number>;
}

/** Tenant `a` has many runs that begin with these steps and then call something that never answers. */
async function crowd(steps: (url: string) => object[], config: Record<string, number> = {}): Promise<Crowd> {
  const ledger = await startLedger();
  const it = await startWorkflow({
    config: { workflow: { ...LEDGER_CONFIG.workflow, maxRunningRuns: SLOTS, ...config } },
  });
  ledger.answer('stuck', () => {});
  onTestFinished(async () => {
    // Steps in the air would get the time that a service has to drain.
    ledger.answer('stuck', (_, response) => response.end('{}'));
    const closed = it.close();
    ledger.cut();
    await closed;
  });
  const definition = { id: 'stuck', steps: steps(`${ledger.url}/stuck`) };
  await Promise.all(Array.from({ length: MANY }, () => it.start(definition, { tenant: 'a' })));
  return {
    it,
    ledger,
    async countOf(status) {
      const runs = await it.services.runs.list('a', { status: [status] as never, limit: MANY });
      return runs.items.length;
    },
  };
}

const stuck = (url: string) => ({ uses: 'http', with: { url }, timeoutMs: 24 * 3600_000 });
const sleep = { uses: 'wait', with: { ms: SLEEP_MS } };

describe('a tenant with many long runs', () => {
  test('holds three quarters of the places and of the slots, and the run of another gets through', async () => {
    const { it, ledger, countOf } = await crowd((url) => [stuck(url)]);
    await expect.poll(() => countOf('running'), POLL).toBe(SHARE);
    expect(await countOf('queued')).toBe(MANY - SHARE);
    const call = { steps: [{ uses: 'http', with: { url: `${ledger.url}/quick` } }] };
    const others = await Promise.all(['b', 'c', 'd'].map((tenant) => it.start(call, { tenant })));
    await expect.poll(() => ledger.count('quick')).toBe(others.length);
    expect(await countOf('running')).toBe(SHARE);
  });

  test('that wake at the same time leaves room for those of others that are due, or new', async () => {
    const { it, ledger, countOf } = await crowd((url) => [sleep, stuck(url)]);
    const call = { uses: 'http', with: { url: `${ledger.url}/quick` } };
    const sleeper = await it.start({ steps: [sleep, call] }, { tenant: 'b' });
    await expect.poll(async () => (await it.run(sleeper, 'b')).status).toBe('waiting');
    await expect.poll(() => countOf('waiting'), POLL).toBe(MANY);
    it.clock.advance(SLEEP_MS);
    await it.services.engine.tick();
    await expect.poll(() => countOf('running'), POLL).toBe(SHARE);
    await expect.poll(() => ledger.count('quick')).toBe(1);
    await it.start({ steps: [call] }, { tenant: 'c' });
    await expect.poll(() => ledger.count('quick')).toBe(2);
    expect(await countOf('waiting')).toBe(MANY - SHARE);
  });

  test('gets on with the others as its own end, ready and due ones alike', async () => {
    const { it, ledger, countOf } = await crowd((url) => [sleep, { uses: 'http', with: { url } }], {
      maxRunningRuns: 8,
    });
    ledger.answer('stuck', (_, response) => response.end('{}'));
    await expect.poll(() => countOf('waiting'), POLL).toBe(MANY);
    it.clock.advance(SLEEP_MS);
    await it.services.engine.tick();
    await expect.poll(() => countOf('succeeded'), POLL).toBe(MANY);
    expect(ledger.mostOpen).toBeLessThanOrEqual(6);
  });
});

test('a tenant is limited to its share after a crash: another one makes progress', async () => {
  const [dataDir, ledger] = [await tempDir(), await startLedger()];
  const config = { workflow: { ...LEDGER_CONFIG.workflow, maxRunningRuns: 8, maxRunningSteps: 8 } };
  ledger.answer('stuck', () => {});
  const runs = async ({ url }: DaemonProcess, tenant: string, init: RequestInit, query = '') => {
    const headers = { 'content-type': 'application/json', 'x-tenant-id': tenant };
    const response = await fetch(`${url}/api/v1/workflows/runs${query}`, { ...init, headers });
    return (await response.json()) as { items: unknown[] };
  };
  const begin = (daemon: DaemonProcess, tenant: string, path: string) => {
    const definition = asDefinition({ steps: [stuck(`${ledger.url}/${path}`), { uses: 'set' }] });
    return runs(daemon, tenant, { method: 'POST', body: JSON.stringify({ definition }) });
  };
  const running = async (daemon: DaemonProcess) =>
    (await runs(daemon, 'a', {}, '?status=running&limit=100')).items.length;

  const first = await startProcess(dataDir, config);
  await Promise.all(Array.from({ length: 30 }, () => begin(first, 'a', 'stuck')));
  await expect.poll(() => running(first), POLL).toBe(6);
  await first.kill();
  const second = await startProcess(dataDir, config);
  await expect.poll(() => running(second), POLL).toBe(6);
  await begin(second, 'b', 'quick');
  await expect.poll(() => ledger.count('quick')).toBe(1);
  expect(await running(second)).toBe(6);
  expect(ledger.open).toBeLessThanOrEqual(6);
});
