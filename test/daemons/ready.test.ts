import { mkdir, writeFile } from 'node:fs/promises';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test, vi } from 'vitest';
import { gateway } from '../../src/daemons/gateway/index.ts';
import { marketplace } from '../../src/daemons/marketplace/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { rest } from '../../src/daemons/rest/index.ts';
import { state } from '../../src/daemons/state/index.ts';
import { workflow } from '../../src/daemons/workflow/index.ts';
import { pluginsFolder, readLockFile, writeLockFile } from '../../src/plugins/lock-file.ts';
import { startTestDaemon, type TestDaemon } from '../support/daemon.ts';
import { openApiFaults } from '../support/openapi.ts';

const SERVICES = { gateway, marketplace, rest, state, workflow };

async function readiness(daemon: Pick<TestDaemon<unknown>, 'fetch'>, path = '/ready') {
  const response = await daemon.fetch(path);
  const body = (await response.json()) as {
    ready?: boolean;
    error?: { code: string; message: string; details: { reasons: Array<{ reasonCode: string }> } };
  };
  const reasons = body.error?.details.reasons.map(({ reasonCode }) => reasonCode) ?? [];
  return { status: response.status, headers: response.headers, body, reasons };
}

test.each(Object.entries(SERVICES))(
  '%s is ready beside its health, and describes that',
  async (name, service) => {
    const daemon = await startTestDaemon<object>(service as Parameters<typeof startTestDaemon<object>>[0]);
    const paths = name === 'rest' ? ['/api/v1/ready'] : ['/ready', '/api/v1/ready'];
    for (const path of paths) {
      const { status, headers, body } = await readiness(daemon, path);
      expect([status, body, headers.get('cache-control')]).toEqual([
        200,
        { ready: true, service: name },
        'no-store',
      ]);
    }
    const document = (await (await daemon.fetch('/openapi.json')).json()) as {
      paths: Record<string, { get: { responses: object } }>;
    };
    expect(await openApiFaults(document)).toEqual([]);
    expect(document.paths['/api/v1/ready']!.get.responses).toMatchObject({
      200: {},
      503: { description: 'SERVICE_UNAVAILABLE' },
    });
  },
);

test.each([
  ['state', state, 'state.db'],
  ['workflow', workflow, 'workflow.db'],
] as const)(
  '%s is not ready while its store is silent for 5 s, and again once it answers',
  async (name, service, file) => {
    const daemon = await startTestDaemon<object>(service as Parameters<typeof startTestDaemon<object>>[0]);
    const locking = new Sqlite(join(daemon.dataDir, file));
    locking.exec('begin immediate');
    expect((await readiness(daemon)).status).toBe(200);
    daemon.clock.advance(4999);
    expect((await readiness(daemon)).status).toBe(200);
    daemon.clock.advance(1);
    const silent = await readiness(daemon);
    expect([silent.status, silent.reasons, silent.headers.get('retry-after')]).toEqual([
      503,
      ['STORE_SILENT'],
      '1',
    ]);
    expect(silent.body.error).toMatchObject({
      code: 'SERVICE_UNAVAILABLE',
      message: `${name} is not ready. The store has not answered for 5 s.`,
    });
    expect((await daemon.fetch('/health')).status).toBe(200);
    await readiness(daemon);
    const warnings = daemon.logs.lines.filter(({ reasonCode }) => reasonCode === 'STORE_SILENT');
    expect(warnings).toHaveLength(1);

    locking.exec('rollback');
    locking.close();
    await vi.waitFor(async () => expect((await readiness(daemon)).status).toBe(200), { timeout: 15_000 });
  },
);

test('the gateway stays ready while another program locks svc.db, because it accepts deliveries', async () => {
  const daemon = await startTestDaemon(gateway);
  const locking = new Sqlite(join(daemon.dataDir, 'svc.db'));
  locking.exec('begin immediate');
  expect((await readiness(daemon)).status).toBe(200);
  daemon.clock.advance(10_000);
  expect((await readiness(daemon)).status).toBe(200);
  locking.close();
});

test('the gateway is not ready before the services of its node to which it forwards calls', async () => {
  const peers = createPeers();
  const whole = await startTestDaemon(gateway, { peers, elsewhere: [] });
  expect(await readiness(whole)).toMatchObject({ status: 503, reasons: ['SERVICES_STARTING'] });
  peers.set({ rest: 'http://127.0.0.1:5050' });
  const half = await readiness(whole);
  expect(half.body.error!.message).toBe('gateway is not ready. Not started yet: workflow.');
  peers.set({ workflow: 'http://127.0.0.1:7778' });
  expect((await readiness(whole)).status).toBe(200);

  const alone = await startTestDaemon(gateway, { elsewhere: ['rest', 'workflow'] });
  expect((await readiness(alone)).status).toBe(200);
});

test('a service is not ready while the latest change of plugins is not loaded', async () => {
  const daemon = await startTestDaemon(rest);
  const { dataDir } = daemon;
  await mkdir(pluginsFolder(dataDir), { recursive: true });
  const lock = await readLockFile(dataDir);
  const file = join(dataDir, 'marketplace.lock.json');
  await writeFile(file, 'damaged');
  await vi.waitFor(async () => {
    const { status, reasons } = await readiness(daemon, '/api/v1/ready');
    expect([status, reasons]).toEqual([503, ['PLUGINS_BEHIND']]);
  });
  await writeLockFile(dataDir, { ...lock, revision: lock.revision + 1 });
  await vi.waitFor(async () => expect((await readiness(daemon, '/api/v1/ready')).status).toBe(200));
});

test('a draining service is not ready on connections that are still open', async () => {
  const daemon = await startTestDaemon(state);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = () =>
    new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
      get(`${daemon.url}/ready`, { agent }, (response) => {
        let body = '';
        response
          .on('data', (text) => (body += text))
          .on('end', () => resolve({ status: response.statusCode, body }));
      }).on('error', reject);
    });
  expect((await ask()).status).toBe(200);
  const closed = daemon.close();
  const { status, body } = await ask();
  expect([status, body]).toEqual([503, expect.stringContaining('"DRAINING"')]);
  await closed;
  agent.destroy();
});
