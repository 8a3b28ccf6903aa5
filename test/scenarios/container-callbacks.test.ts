import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createPeers } from '../../src/daemons/peers.ts';
import { state } from '../../src/daemons/state/index.ts';
import type { TestEngine } from '../plugins/engine.ts';
import { CONTAINER_ENGINES, useEngine } from '../support/containers.ts';
import { startTestDaemon, TEST_KEYS, tempDir } from '../support/daemon.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';

/** Calls from inside a container to a gateway that listens on the machine's loopback alone, as it does by default. */
const PROJECT = join(import.meta.dirname, '../fixtures/projects/callbacks');

interface Reply {
  status?: number;
  body?: { executionId?: string; result?: unknown; error?: { code: string; message: string } };
  failed?: string;
}

let engine: TestEngine;

async function start(container: Record<string, unknown> = {}, dataDir?: string) {
  const keeper = await startTestDaemon(state);
  return startGateway({
    projectDir: PROJECT,
    peers: createPeers({ state: keeper.url }),
    ...(dataDir === undefined ? {} : { dataDir }),
    config: {
      gateway: {},
      execution: {
        default: 'container',
        container: { socket: engine.socket, requireLimits: false, ...container },
      },
    },
  });
}

async function dispatch(gateway: TestGateway, handler: string, input: unknown, tenantId = 'acme') {
  const reply = await gateway.fetch('/internal/dispatch', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-internal-secret': TEST_KEYS.internalSecret },
    body: JSON.stringify({
      plugin: { id: '@acme/caller' },
      handler: `handlers.js#${handler}`,
      input,
      tenantId,
    }),
  });
  return (await reply.json()) as { result: { result: { url: string; replies: Reply[] } } };
}

async function callsFrom(gateway: TestGateway, handler: string, calls: unknown[]): Promise<Reply[]> {
  const body = await dispatch(gateway, handler, { calls });
  expect(body.result, JSON.stringify(body)).toBeDefined();
  return body.result.result.replies;
}

const toTenant = (more: object = {}) => ({
  path: '/internal/dispatch',
  method: 'POST',
  body: { plugin: { id: '@acme/caller' }, handler: 'handlers.js#tenant', ...more },
});

const socketsOf = ({ dataDir }: TestGateway) => {
  const folder = join(dataDir, 'run/containers');
  return existsSync(folder) ? readdirSync(folder) : [];
};

describe.each(CONTAINER_ENGINES)('a container of %s', { timeout: 90_000 }, (name) => {
  useEngine(name, (started) => {
    engine = started;
  });

  test('without any network reaches the gateway, and dispatches for its tenant', async () => {
    const gateway = await start();
    const replies = await callsFrom(gateway, 'dispatching', [
      { path: '/health' },
      { path: '/health', raw: true, bearer: null },
      toTenant(),
      toTenant({ tenantId: 'other' }),
    ]);
    expect(replies.map(({ status, failed }) => status ?? failed)).toEqual([200, 200, 200, 403]);
    expect(replies[2]!.body!.result).toEqual({ exitCode: 0, result: 'acme' });
    await expect.poll(() => socketsOf(gateway)).toEqual([]);
  });

  test('with the default network of the engine reaches it just so, on no new port of the machine', async () => {
    const gateway = await start();
    const ports = listeningPorts();
    const held = dispatch(gateway, 'hold', {}).catch(() => 'cut');
    await expect.poll(() => gateway.logs.lines.some(({ message }) => message === 'holding')).toBe(true);
    expect(listeningPorts()).toEqual(ports);
    const [health, reply] = await callsFrom(gateway, 'networked', [{ path: '/health' }, toTenant()]);
    expect(health).toMatchObject({ status: 200 });
    expect(reply).toMatchObject({ status: 200, body: { result: { result: 'acme' } } });
    await gateway.close();
    await held;
  });

  test('reaches what its manifest asks for, and nothing else', async () => {
    const gateway = await start();
    const refused = [
      '/api/v1/whoami',
      '/api/v1/marketplace/plugins',
      '/api/v1/workflows/../marketplace/plugins',
      '/api/v1/workflowsx',
      '/metrics',
      '/webhooks/a/b',
      '/auth/token',
      '/docs',
    ].map((path) => ({ path, raw: true }));
    const asked = [...refused, { path: '/api/v1/workflows/runs' }, toTenant()];
    const replies = await callsFrom(gateway, 'plain', asked);
    const codes = (of: Reply[]) => of.map(({ status, body }) => [status, body?.error?.code]);
    expect(codes(replies)).toEqual(asked.map(() => [403, 'PERMISSION_DENIED']));
    expect(replies.at(-2)!.body!.error!.message).toContain('permissions.platform.workflows');

    const escaped = ['/api/v1/workflows/%2e%2e/marketplace/plugins', '/api/v1/workflows/../../../metrics'];
    const tricks = await callsFrom(
      gateway,
      'networked',
      escaped.map((path) => ({ path, raw: true })),
    );
    expect(tricks.map(({ status }) => status)).toEqual([400, 400]);
  });

  test('is let in by the token of its own execution alone', async () => {
    const gateway = await start();
    const held = dispatch(gateway, 'hold', {}).catch(() => 'cut');
    const holding = () => gateway.logs.lines.find(({ message }) => message === 'holding');
    await expect.poll(holding).toBeDefined();
    const { token } = holding()!.meta as { token: string };
    const replies = await callsFrom(gateway, 'dispatching', [
      { ...toTenant(), bearer: token },
      { ...toTenant(), bearer: 'made-up' },
      { ...toTenant(), bearer: null },
    ]);
    expect(replies.map(({ status }) => status)).toEqual([401, 401, 401]);
    expect(gateway.logs.lines.filter(({ reasonCode }) => reasonCode === 'NOT_ITS_TOKEN')).toHaveLength(3);
    await gateway.close();
    await held;
  });

  test('finds a socket below a data folder whose path is too long for one, and none is left behind', async () => {
    const dataDir = join(await tempDir(), 'a-long-name'.repeat(10));
    const long = await start({}, dataDir);
    expect(await callsFrom(long, 'plain', [{ path: '/health' }])).toMatchObject([{ status: 200 }]);

    const left = await tempDir();
    await mkdir(join(left, 'run/containers'), { recursive: true });
    await writeFile(join(left, 'run/containers/7'), '');
    const gateway = await start({}, left);
    expect(await callsFrom(gateway, 'plain', [{ path: '/health' }])).toMatchObject([{ status: 200 }]);
    await expect.poll(() => socketsOf(gateway)).toEqual([]);
  });
});

/** The TCP ports that this process listens on. */
function listeningPorts(): string[] {
  const inodes = readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1] ?? [];
    } catch {
      return [];
    }
  });
  const rows = ['tcp', 'tcp6'].flatMap((kind) =>
    readFileSync(`/proc/net/${kind}`, 'utf8').split('\n').slice(1),
  );
  const LISTEN = '0A';
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter(([, , , status, , , , , , inode]) => status === LISTEN && inodes.includes(inode!))
    .map(([, local]) => local!)
    .sort();
}
