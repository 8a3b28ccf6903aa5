import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  disablePlugin,
  installPlugin,
  linkPlugin,
  listPlugins,
  uninstallPlugin,
  updatePlugin,
} from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { type ManualClock, systemClock } from '../../../src/kit/time/clock.ts';
import { pluginsFolder, readLockFile, readNotShared, stillNotShared } from '../../../src/plugins/index.ts';
import { openSharedPlugins } from '../../../src/store/open-store.ts';
import { atEnd } from '../../support/at-end.ts';
import { tempDir } from '../../support/daemon.ts';
import { startGateway } from '../../support/gateway.ts';
import { migratedPostgres } from '../../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { asCaller, send, startRest } from '../rest/support.ts';
import { startWorkflow } from '../workflow/support/workflow.ts';
import { greeter, pluginFolder, startMarketplace } from './support.ts';

const params = { pluginId: '@acme/greeter' as never };

/** Moves the clock of each node with real time. */
function movedClocks() {
  const clocks = new Set<ManualClock>();
  const timer = setInterval(() => {
    for (const clock of clocks) clock.advance(10);
  }, 10);
  onTestFinished(() => clearInterval(timer));
  return clocks;
}

/** Nodes of one PostgreSQL store, each with a project and data folder of its own. */
async function cluster() {
  const url = await migratedPostgres();
  const clocks = movedClocks();
  const folders = new Map<string, string>();

  async function options(name: string) {
    const projectDir = folders.get(name) ?? (await tempDir());
    folders.set(name, projectDir);
    return {
      projectDir,
      dataDir: join(projectDir, '.svc'),
      config: { store: { url } },
      env: { SVC_INSTANCE: name },
      peers: createPeers(),
    };
  }
  /** Starts the services of a node that plugins concern. */
  async function start(name: string) {
    const shared = await options(name);
    const marketplace = await startMarketplace(shared);
    const rest = await startRest(shared);
    const workflow = await startWorkflow(shared);
    const gateway = await startGateway(shared);
    shared.peers.set({ rest: rest.url, workflow: workflow.url, gateway: gateway.url });
    const daemons = [marketplace, rest, workflow, gateway];
    for (const { clock } of daemons) clocks.add(clock);
    return {
      dataDir: shared.dataDir,
      marketplace,
      gateway,
      /** Result of the command of `greeter`, or the status of a failed call. */
      async greet(): Promise<unknown> {
        const path = `/api/v1/commands/${encodeURIComponent('@acme/greeter')}/greet-acmegreeter`;
        const { body, status } = await send(rest, 'POST', path, {
          body: {},
          headers: asCaller('operator'),
        });
        return (body as { result?: unknown }).result ?? status;
      },
      versions: async () =>
        Object.fromEntries(
          (await marketplace.call(listPlugins)).items.map(({ id, version }) => [id, version]),
        ),
      async notReady(): Promise<string[]> {
        const response = await gateway.fetch('/ready');
        const { error } = (await response.json()) as {
          error?: { details: { reasons: Array<{ reasonCode: string }> } };
        };
        return error?.details.reasons.map(({ reasonCode }) => reasonCode) ?? [];
      },
      async stop() {
        for (const daemon of daemons.toReversed()) {
          clocks.delete(daemon.clock);
          await daemon.close();
        }
      },
    };
  }
  async function store() {
    const opened = await openSharedPlugins(url, {
      clock: systemClock,
      logger: silentLogger,
      service: 'test',
    });
    atEnd(() => opened.close());
    return opened;
  }
  return { url, start, store, options, clocks };
}

const installed = async (version: string, id = '@acme/greeter') => ({
  body: { source: await pluginFolder(greeter(version, { id })) },
});

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'plugins of several nodes' : POSTGRES_MISSING, () => {
  test('a confirmed change on one node is in force on the others', async () => {
    const { start } = await cluster();
    const [a, b, c] = [await start('a'), await start('b'), await start('c')];
    await a.marketplace.call(installPlugin, await installed('1.0.0'));
    expect(await Promise.all([a.greet(), b.greet(), c.greet()])).toEqual(Array(3).fill('hello from 1.0.0'));
    await b.marketplace.call(updatePlugin, { params, ...(await installed('2.0.0')) });
    expect(await Promise.all([a.greet(), b.greet(), c.greet()])).toEqual(Array(3).fill('hello from 2.0.0'));
    await c.marketplace.call(disablePlugin, { params });
    expect(await Promise.all([a.greet(), b.greet(), c.greet()])).toEqual([404, 404, 404]);
    await a.marketplace.call(uninstallPlugin, { params });
    expect(await Promise.all([a, b, c].map(({ versions }) => versions()))).toEqual([{}, {}, {}]);
  });

  test('a node that was down has the changes once it is ready', async () => {
    const { start } = await cluster();
    const [a, b] = [await start('a'), await start('b')];
    await a.marketplace.call(installPlugin, await installed('1.0.0'));
    await b.stop();
    await a.marketplace.call(updatePlugin, { params, ...(await installed('2.0.0')) });
    const again = await start('b');
    expect(await again.greet()).toBe('hello from 2.0.0');
    await expect.poll(() => again.notReady()).toEqual([]);
  });

  test('a node whose files of a plugin were changed or deleted restores them at its start', async () => {
    const { start } = await cluster();
    const a = await start('a');
    await a.marketplace.call(installPlugin, await installed('1.0.0'));
    await a.stop();
    const [folder] = await readdir(pluginsFolder(a.dataDir));
    await writeFile(join(pluginsFolder(a.dataDir), folder!, 'h.js'), "export const greet = () => 'changed'");
    const again = await start('a');
    expect(await again.greet()).toBe('hello from 1.0.0');
    await again.stop();
    await rm(pluginsFolder(a.dataDir), { recursive: true });
    expect(await (await start('a')).greet()).toBe('hello from 1.0.0');
  });

  test('installations on two nodes at the same time end in one list', async () => {
    const { start, store } = await cluster();
    const [a, b] = [await start('a'), await start('b')];
    const ids = ['one', 'two', 'three', 'four'];
    await Promise.all(
      ids.map(async (id, index) =>
        [a, b][index % 2]!.marketplace.call(installPlugin, await installed('1.0.0', id)),
      ),
    );
    const expected = Object.fromEntries(ids.map((id) => [id, '1.0.0']));
    expect(await a.versions()).toEqual(expected);
    expect(await b.versions()).toEqual(expected);
    expect((await (await store()).lock.read())!.revision).toBe(4);

    const outcomes = await Promise.allSettled([
      a.marketplace.call(installPlugin, await installed('1.0.0', 'five')),
      b.marketplace.call(installPlugin, await installed('2.0.0', 'five')),
    ]);
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(refused.map(({ reason }) => reason.code)).toEqual(['PLUGIN_CONFLICT']);
    expect((await a.versions()).five).toBe((await b.versions()).five);
  });

  test('a package whose bytes in the store were changed is refused, and the node is not ready', async () => {
    const { start, store, options } = await cluster();
    const a = await start('a');
    await a.marketplace.call(installPlugin, await installed('1.0.0'));
    const { objects } = await store();
    const scope = { tenant: '$svc', namespace: 'packages' };
    const [part] = await objects.list(scope, { prefix: 'part/', limit: 10 });
    const { data } = (await objects.read(scope, part!.key))!;
    const changed = Buffer.from(data);
    changed[changed.length - 10]! ^= 1;
    await objects.write(scope, part!.key, changed);

    const b = await start('b');
    expect(await b.greet()).toBe(404);
    expect(await b.notReady()).toEqual(['PLUGINS_BEHIND']);
    expect(await readdir(pluginsFolder((await options('b')).dataDir))).toEqual([]);
    const [fault] = b.marketplace.logs.lines.filter(({ level }) => level === 'error');
    expect(fault!.message).toContain('was changed');
    expect(await a.greet()).toBe('hello from 1.0.0');
    await a.marketplace.call(uninstallPlugin, { params });
    await a.marketplace.call(installPlugin, await installed('1.0.0'));
    await expect.poll(() => b.greet()).toBe('hello from 1.0.0');
    await expect.poll(() => b.notReady()).toEqual([]);
  });

  test('an installation is confirmed with a warning while a node does not load it, and that node is not ready', async () => {
    const { start, store } = await cluster();
    const [a, b] = [await start('a'), await start('b')];
    // No process can write to this path.
    await rm(pluginsFolder(b.dataDir), { recursive: true, force: true });
    await writeFile(pluginsFolder(b.dataDir), '');
    await a.marketplace.call(installPlugin, await installed('1.0.0'));
    expect(a.marketplace.logs.lines).toContainEqual(
      expect.objectContaining({ message: expect.stringContaining('not all nodes have loaded it') }),
    );
    await expect.poll(() => b.notReady()).toEqual(['PLUGINS_BEHIND']);
    expect(await (await store()).lock.behind(1)).toEqual(['b']);
    expect(await a.notReady()).toEqual([]);
  });

  test('packages that no plugin uses are deleted from the store', async () => {
    const { start, store } = await cluster();
    const a = await start('a');
    await a.marketplace.call(installPlugin, await installed('1.0.0'));
    await a.marketplace.call(updatePlugin, { params, ...(await installed('2.0.0')) });
    const { objects } = await store();
    const stored = () => objects.list({ tenant: '$svc', namespace: 'packages' }, { prefix: '', limit: 10 });
    expect((await stored()).map(({ key }) => key.split('/')[0])).toEqual(['index', 'part']);
    await a.marketplace.call(uninstallPlugin, { params });
    expect(await stored()).toEqual([]);
  });

  test('linking is refused while several nodes run', async () => {
    const { start } = await cluster();
    const [a, b] = [await start('a'), await start('b')];
    const body = { folder: await pluginFolder() };
    await expect(a.marketplace.call(linkPlugin, { body })).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('svc plugins install'),
    });
    await b.stop();
    await a.marketplace.call(linkPlugin, { body });
    expect(await a.greet()).toBe('hello from 1.0.0');
  });

  test('plugins that one node has installed before are shared', async () => {
    const { start, options } = await cluster();
    const { dataDir, projectDir } = await options('a');
    const alone = await startMarketplace({ dataDir, projectDir });
    await alone.call(installPlugin, await installed('1.0.0'));
    await alone.close();
    const lock = await readLockFile(dataDir);
    const a = await start('a');
    const b = await start('b');
    expect([await a.greet(), await b.greet()]).toEqual(['hello from 1.0.0', 'hello from 1.0.0']);
    expect(await readLockFile(b.dataDir)).toEqual({ ...lock, shared: true });
  });

  test('a node that comes with another list keeps its files, names the differences, and can share them', async () => {
    const { start, options } = await cluster();
    const before = { a: ['1.0.0', '@acme/greeter'], b: ['2.0.0', '@acme/greeter'], also: ['1.0.0', 'extra'] };
    const install = async (name: string, sources: readonly string[][]) => {
      const { dataDir, projectDir } = await options(name);
      const alone = await startMarketplace({ dataDir, projectDir });
      for (const [version, id] of sources) await alone.call(installPlugin, await installed(version!, id));
      await alone.close();
    };
    await install('a', [before.a]);
    await install('b', [before.b, before.also]);
    await start('a');
    const b = await start('b');
    expect([await b.greet(), await b.versions()]).toEqual(['hello from 1.0.0', { '@acme/greeter': '1.0.0' }]);
    const services = [b.marketplace, b.gateway];
    const warnings = services.flatMap(({ logs }) =>
      logs.lines.filter(({ event }) => event === 'plugins.not_shared'),
    );
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringMatching(
        /@acme\/greeter was 2\.0\.0 here and is 1\.0\.0 now; run `svc plugins update .*extra 1\.0\.0 was only on this node; run `svc plugins install /,
      ),
    ]);
    expect((await stillNotShared(b.dataDir)).map(({ id, version }) => [id, version])).toEqual([
      ['@acme/greeter', '2.0.0'],
      ['extra', '1.0.0'],
    ]);

    await b.stop();
    const again = await start('b');
    expect(await readdir(pluginsFolder(b.dataDir))).toHaveLength(3);
    const [greeter2, extra] = await readNotShared(b.dataDir);
    const folderOf = (entry: typeof extra) => join(pluginsFolder(b.dataDir), entry!.folder);
    await again.marketplace.call(installPlugin, { body: { source: folderOf(extra) } });
    await again.marketplace.call(updatePlugin, { params, body: { source: folderOf(greeter2) } });
    expect(await again.versions()).toEqual({ '@acme/greeter': '2.0.0', extra: '1.0.0' });
    expect(await stillNotShared(b.dataDir)).toEqual([]);
  });
});
