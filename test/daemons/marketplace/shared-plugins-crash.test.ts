import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { installPlugin, listPlugins, PlatformConfig } from '../../../src/contracts/index.ts';
import { type Client, createClient, serviceHeaders } from '../../../src/http/index.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../src/kit/time/clock.ts';
import { minutes } from '../../../src/kit/time/duration.ts';
import { openSharedPlugins } from '../../../src/store/open-store.ts';
import { spawnService } from '../../../src/supervisor/service-process.ts';
import { atEnd } from '../../support/at-end.ts';
import { TEST_KEYS, TEST_OPERATOR, tempDir } from '../../support/daemon.ts';
import { migratedPostgres } from '../../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { greeter, pluginFolder } from './support.ts';

const HEADERS = serviceHeaders(TEST_KEYS.internalSecret, {
  hostId: TEST_OPERATOR.hostId,
  namespaceId: 'default',
});

interface MarketplaceProcess {
  client: Client;
  kill(): Promise<void>;
}

/** Starts the marketplace of a node in a process of its own. */
async function startProcess(url: string, projectDir: string): Promise<MarketplaceProcess> {
  const dataDir = join(projectDir, '.svc');
  await mkdir(dataDir, { recursive: true });
  const service = spawnService({
    name: 'marketplace',
    start: {
      config: PlatformConfig.parse({ store: { url } }),
      profile: 'development',
      projectDir,
      configFile: null,
      dataDir,
      keys: TEST_KEYS,
      operator: TEST_OPERATOR,
      peers: {},
      listen: { host: '127.0.0.1', port: 0 },
    },
    env: { ...process.env },
    onLines: () => {},
    now: Date.now,
  });
  const kill = async (): Promise<void> => {
    process.kill(service.pid, 'SIGKILL');
    await service.exited;
  };
  atEnd(() => kill().catch(() => {}));
  const { url: address, listener } = await service.listening;
  listener?.close();
  return {
    client: createClient({
      url: address,
      peer: 'marketplace',
      timeoutMs: minutes(1),
      headers: () => HEADERS,
    }),
    kill,
  };
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  atEnd(() => client.end().catch(() => {}));
  return client;
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'killed installations' : POSTGRES_MISSING, () => {
  test('an installation that is killed before its commit leaves no plugin and does not block other nodes', async () => {
    const url = await migratedPostgres();
    const [folderA, folderB] = [await tempDir(), await tempDir()];
    const a = await startProcess(url, folderA);
    const b = await startProcess(url, folderB);
    const body = { source: await pluginFolder(greeter()) };
    // The commit waits for this transaction, when the package is already stored.
    const blocking = await connect(url);
    await blocking.query('begin');
    await blocking.query('lock table svc.plugin_lock in exclusive mode');
    const installing = a.client.call(installPlugin, { body }).catch(() => 'killed');
    // Within a transaction, the activity does not change.
    const observing = await connect(url);
    const waiting = async () => {
      const { rows } = await observing.query(
        `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%insert into svc.plugin_lock%'`,
      );
      return rows.length;
    };
    await expect.poll(waiting).toBe(1);
    await a.kill();
    expect(await installing).toBe('killed');
    await observing.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'",
    );
    await blocking.query('commit');

    const store = await openSharedPlugins(url, { clock: systemClock, logger: silentLogger, service: 'test' });
    atEnd(() => store.close());
    expect(await store.lock.read()).toBe(undefined);
    expect((await b.client.call(installPlugin, { body })).version).toBe('1.0.0');
    const again = await startProcess(url, folderA);
    const { items } = await again.client.call(listPlugins);
    expect(items).toEqual([expect.objectContaining({ id: '@acme/greeter', status: 'loaded' })]);
  });

  test('an installation that is killed after its commit is complete on every node', async () => {
    const url = await migratedPostgres();
    const [folderA, folderB] = [await tempDir(), await tempDir()];
    const a = await startProcess(url, folderA);
    const body = { source: await pluginFolder(greeter()) };
    // The installing node cannot record that it has loaded the plugin.
    const blocking = await connect(url);
    await blocking.query('begin');
    await blocking.query('lock table svc.member in exclusive mode');
    const installing = a.client.call(installPlugin, { body }).catch(() => 'killed');
    const committed = async () => {
      const { rows } = await blocking.query<{ revision: string }>('select revision from svc.plugin_lock');
      return rows[0]?.revision;
    };
    await expect.poll(committed).toBe('1');
    await a.kill();
    expect(await installing).toBe('killed');
    await blocking.query('commit');
    for (const folder of [folderA, folderB]) {
      const node = await startProcess(url, folder);
      const { items } = await node.client.call(listPlugins);
      expect(items).toEqual([expect.objectContaining({ id: '@acme/greeter', status: 'loaded' })]);
    }
  });
});
