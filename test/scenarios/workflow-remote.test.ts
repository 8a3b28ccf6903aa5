import { describe, expect, test } from 'vitest';
import { postCancelRun, startRun } from '../../src/contracts/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { state } from '../../src/daemons/state/index.ts';
import { minutes } from '../../src/kit/time/duration.ts';
import { startTestAgent } from '../agent/support.ts';
import { writeCodePlugin } from '../daemons/workflow/support/code.ts';
import { startWorkflow } from '../daemons/workflow/support/workflow.ts';
import { engineMissing, type TestEngine } from '../plugins/engine.ts';
import { useEngine } from '../support/containers.ts';
import { startTestDaemon, tempDir } from '../support/daemon.ts';
import { startGateway } from '../support/gateway.ts';

const SOURCE = `
  export const where = defineCommand({
    idempotent: true,
    execute: (ctx, input) => ({ input, host: ctx.host, run: ctx.hostContext.runId }),
  });
  export const hang = defineCommand({ execute: () => new Promise(() => {}) });
  export const flow = defineWorkflow({
    id: 'flow',
    run: async (ctx, { n }) => {
      const kept = await ctx.step('keep', async () => { await ctx.state.set('n', n); return n; });
      const [signal, slow] = await ctx.all([
        ctx.waitForSignal('go'),
        async () => { await ctx.sleep(0); return ctx.step('read', () => ctx.state.get('n')); },
      ]);
      return { kept, slow, payload: signal.payload, invoked: await ctx.invoke('code/where', { n }) };
    },
  });`;
const MANIFEST = {
  commands: [
    { id: 'where', handler: 'flows.js#where' },
    { id: 'hang', handler: 'flows.js#hang' },
  ],
  permissions: { platform: { state: true } },
};

/** The gateway that holds hosts and containers, and the workflow service that asks it. */
async function start(execution: Record<string, unknown>) {
  const projectDir = await tempDir();
  await writeCodePlugin(projectDir, SOURCE, MANIFEST);
  const config = { execution };
  const keeper = await startTestDaemon(state);
  const peers = createPeers({ state: keeper.url });
  const gateway = await startGateway({ projectDir, peers, config });
  const it = await startWorkflow({ projectDir, config, peers: createPeers({ gateway: gateway.url }) });
  peers.set({ workflow: it.url });
  return { gateway, it };
}

async function runBoth({ it }: Awaited<ReturnType<typeof start>>): Promise<void> {
  const id = await it.start({
    steps: [{ id: 's', uses: 'code/where', with: { a: 1 }, timeoutMs: 60_000 }],
  });
  await expect.poll(async () => (await it.run(id)).status, { timeout: 60_000 }).toMatch(/succeeded|failed/);
  expect(await it.step(id, 'main.s')).toMatchObject({
    error: null,
    output: { input: { a: 1 }, host: 'workflow', run: id },
  });

  const { run } = await it.call(startRun, { body: { workflowId: 'flow', input: { n: 7 } } as never });
  const read = async () =>
    (await it.steps(run.id)).some(({ name, status }) => name === 'read@1-1' && status === 'succeeded');
  await expect.poll(read, { timeout: 60_000 }).toBe(true);
  await it.services.runs.signal('default', run.id, 'go', 'now');
  await expect
    .poll(async () => (await it.run(run.id)).status, { timeout: 60_000 })
    .toMatch(/succeeded|failed/);
  expect(await it.run(run.id)).toMatchObject({
    error: null,
    output: { kept: 7, slow: 7, payload: 'now', invoked: { host: 'workflow', run: run.id } },
  });
}

/** Fills `places` with steps that hang, and has one more wait for its turn for longer than its own time. */
async function queueBehind({ it }: Awaited<ReturnType<typeof start>>, places: number): Promise<void> {
  const step = (id: string) => it.step(id, 'main.s');
  const begun = async (id: string) => {
    it.clock.advance(50);
    return (await step(id)).startedAt;
  };
  const hang = { steps: [{ id: 's', uses: 'code/hang', timeoutMs: minutes(600) }] };
  const hanging: string[] = [];
  for (let place = 0; place < places; place++) hanging.push(await it.start(hang));
  for (const id of hanging) await expect.poll(() => begun(id), { timeout: 60_000 }).not.toBeNull();
  const id = await it.start({ steps: [{ id: 's', uses: 'code/where', timeoutMs: 1000 }] });
  await expect.poll(async () => (await step(id)).status).toBe('running');
  it.clock.advance(minutes(5));
  expect(await step(id)).toMatchObject({ status: 'running', startedAt: null });
  const begunAt = it.clock.now();
  for (const runId of hanging) await it.call(postCancelRun, { params: { runId: runId as never } });
  await expect.poll(async () => (await it.run(id)).status, { timeout: 60_000 }).toMatch(/succeeded|failed/);
  expect(await step(id)).toMatchObject({ status: 'succeeded', startedAt: begunAt, attempts: 1 });
}

test('a step that waits for a process of its host is queued, and its time begins with its handler', async () => {
  const parts = await start({ plugins: { code: { backend: 'host' } } });
  await startTestAgent(parts.gateway);
  await queueBehind(parts, 2);
}, 120_000);

test('steps and workflows in code run on a host behind its agent', async () => {
  const parts = await start({ plugins: { code: { backend: 'host' } } });
  await startTestAgent(parts.gateway);
  await runBoth(parts);
}, 120_000);

describe.skipIf(engineMissing !== undefined)('in containers', () => {
  let engine: TestEngine;
  useEngine('podman', (started) => {
    engine = started;
  });

  test('steps and workflows in code run too', async () => {
    const container = { socket: engine.socket, network: 'host' };
    await runBoth(await start({ container, plugins: { code: { backend: 'container' } } }));
  }, 240_000);

  test('a step that waits for a container is queued, and its time begins with its handler', async () => {
    const container = { socket: engine.socket, network: 'host', maxContainers: 1 };
    await queueBehind(await start({ container, plugins: { code: { backend: 'container' } } }), 1);
  }, 240_000);
});
