import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { createPeers } from '../../src/daemons/peers.ts';
import { state } from '../../src/daemons/state/index.ts';
import { dispatch } from '../agent/support.ts';
import { engineMissing, type TestEngine } from '../plugins/engine.ts';
import { containersOf, useEngine } from '../support/containers.ts';
import { startTestDaemon } from '../support/daemon.ts';
import { startGateway } from '../support/gateway.ts';
import { createKillableGateway } from '../support/gateway-process.ts';
import { LIBRARY_PROJECT, libraryConfig, useEachAdapter } from '../support/library.ts';

const PROJECT = fileURLToPath(new URL('../fixtures/projects/hosts', import.meta.url));

let engine: TestEngine;

describe.skipIf(engineMissing !== undefined)('a plugin that runs in containers', { timeout: 60_000 }, () => {
  useEngine('podman', (started) => {
    engine = started;
  });

  async function start() {
    const stateDaemon = await startTestDaemon(state);
    return startGateway({
      projectDir: PROJECT,
      peers: createPeers({ state: stateDaemon.url }),
      config: {
        gateway: {},
        execution: {
          container: { socket: engine.socket, network: 'host' },
          plugins: { '@acme/tools': { backend: 'container' } },
        },
      },
    });
  }

  test('gets a token of its own, which the gateway refuses once it has ended', async () => {
    const gateway = await start();
    const declared = { platform: { dispatch: true }, network: ['*'] };
    const reply = await dispatch(gateway, 'environment', { tenantId: 'acme', permissions: declared });
    const { env } = reply.body.result.result as { env: Record<string, string> };
    const { SVC_TOKEN: token = '', GATEWAY_INTERNAL_SECRET: secret = '' } = env;
    const claims = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString());
    expect(claims).toMatchObject({
      hostId: `container:${reply.body.executionId}`,
      namespaceId: 'acme',
      executionId: reply.body.executionId,
      typ: 'container',
    });
    expect(claims.exp - claims.iat).toBe(120);
    expect(secret).not.toBe('');
    const headers = { authorization: `Bearer ${token}` };
    expect((await gateway.fetch('/api/v1/whoami', { headers })).status).toBe(401);
    const again = await gateway.fetch('/internal/dispatch', {
      method: 'POST',
      headers: { ...headers, 'x-internal-secret': secret, 'content-type': 'application/json' },
      body: JSON.stringify({ plugin: { id: '@acme/tools' }, handler: 'handlers.js#echo' }),
    });
    expect(again.status).toBe(403);
  });

  test('reaches storage, models and vectors through the gateway', async () => {
    const keeper = await startTestDaemon(state);
    const container = { socket: engine.socket, network: 'host' };
    const gateway = await startGateway({
      projectDir: LIBRARY_PROJECT,
      peers: createPeers({ state: keeper.url }),
      config: {
        gateway: {},
        execution: { container, plugins: { library: { backend: 'container' } } },
        adapters: await libraryConfig(),
      },
    });
    await useEachAdapter(gateway);
  });

  test('of a gateway that is killed is removed by the next one, and what it held is refused', async () => {
    const {
      url,
      start: startProcess,
      call,
    } = await createKillableGateway({
      plugins: [join(PROJECT, 'plugins/tools')],
      execution: { default: 'container', container: { socket: engine.socket } },
    });
    const list = () => containersOf(engine);
    const killed = await startProcess();
    const lost = call('spin', { timeoutMs: 600_000 }).catch(() => 'lost');
    await expect.poll(() => list().length).toBe(1);
    const [id = ''] = list();
    const [{ Config }] = JSON.parse(engine.cli('inspect', id)) as [{ Config: { Env: string[] } }];
    const token = Config.Env.find((entry) => entry.startsWith('SVC_TOKEN='))!.slice('SVC_TOKEN='.length);
    const status = async () =>
      (await fetch(`${url}/api/v1/whoami`, { headers: { authorization: `Bearer ${token}` } })).status;
    // Known, though it may not ask that.
    expect(await status()).toBe(403);
    killed.kill('SIGKILL');
    expect(await lost).toBe('lost');
    await startProcess();
    expect(await status()).toBe(401);
    await expect.poll(list, { timeout: 20_000 }).not.toContain(id);
  });

  test('without the permission it gets no secret', async () => {
    const gateway = await start();
    const reply = await dispatch(gateway, 'environment', {
      permissions: { network: [], env: [], invoke: [] },
    });
    const { env } = reply.body.result.result as { env: Record<string, string> };
    expect(env).not.toHaveProperty('GATEWAY_INTERNAL_SECRET');
    expect(env.SVC_TOKEN).toBeTypeOf('string');
  });

  test('reaches the state of its tenant through the gateway', async () => {
    const gateway = await start();
    expect((await dispatch(gateway, 'tally', { tenantId: 'acme' })).body.result.result).toBe(1);
    expect((await dispatch(gateway, 'tally', { tenantId: 'acme' })).body.result.result).toBe(2);
    expect((await dispatch(gateway, 'tally', { tenantId: 'other' })).body.result.result).toBe(1);
  });
});
