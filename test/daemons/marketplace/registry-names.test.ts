import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { getPlugin, installPlugin, planPlugin, updatePlugin } from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { greeter, pluginArchive, startMarketplace } from './support.ts';

const NAME = '@acme/greeter';
const params = { pluginId: NAME as never };

interface Registry {
  url: string;
  publish(version: string, manifest?: object): Promise<void>;
  /** Serves other bytes for a version than those that were published. */
  forge(version: string): Promise<void>;
  tag(name: string, version: string): void;
}

/** An npm registry of one package: its document and its archives. */
async function startRegistry(): Promise<Registry> {
  const archives = new Map<string, Buffer>();
  const versions: Record<string, object> = {};
  const tags: Record<string, string> = {};
  const server = createServer((request, response) => {
    const archive = /\/(\d[\w.-]*)\.tgz$/.exec(request.url!)?.[1];
    if (archive) response.end(archives.get(archive));
    else if (decodeURIComponent(request.url!) === `/${NAME}`)
      response.end(JSON.stringify({ name: NAME, 'dist-tags': tags, versions }));
    else response.writeHead(404).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const pack = async (version: string, manifest: object) =>
    readFile(await pluginArchive(greeter(version, manifest)));
  return {
    url,
    async publish(version, manifest = {}) {
      const bytes = await pack(version, manifest);
      archives.set(version, bytes);
      const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
      versions[version] = {
        name: NAME,
        version,
        dist: { tarball: `${url}/${version}.tgz`, integrity },
      };
      tags.latest = version;
    },
    async forge(version) {
      archives.set(version, await pack(version, { display: { name: 'forged' } }));
    },
    tag(name, version) {
      tags[name] = version;
    },
  };
}

let registry: Registry;
const saved = { ...process.env };

beforeEach(async () => {
  registry = await startRegistry();
  process.env.npm_config_registry = registry.url;
  process.env.npm_config_cache = await tempDir();
  process.env.npm_config_fetch_retries = '0';
});
afterEach(() => {
  process.env = { ...saved };
});

test('a plugin is installed by name, range and tag; an update follows its range', async () => {
  await registry.publish('1.0.0');
  await registry.publish('1.2.0');
  await registry.publish('2.0.0');
  registry.tag('old', '1.0.0');

  const daemon = await startMarketplace();
  const installed = await daemon.call(installPlugin, { body: { source: `${NAME}@^1.0.0` } });
  expect(installed).toMatchObject({ version: '1.2.0', source: `${NAME}@^1.0.0`, status: 'loaded' });
  expect(installed.resolved).toMatch(/^@acme\/greeter@1\.2\.0 sha512-/);

  await registry.publish('1.3.0', { permissions: { network: ['api.example.com'] } });
  const plan = await daemon.call(planPlugin, { body: { pluginId: NAME as never } });
  expect(plan).toMatchObject({
    installed: '1.2.0',
    version: '1.3.0',
    changes: [{ change: 'added', what: 'permission', name: 'network api.example.com' }],
  });
  const { manifestDigest } = plan;
  await daemon.call(updatePlugin, { params, body: { manifestDigest } });
  expect(await daemon.call(getPlugin, { params })).toMatchObject({ version: '1.3.0', status: 'loaded' });

  const latest = await startMarketplace();
  expect(await latest.call(installPlugin, { body: { source: NAME } })).toMatchObject({ version: '1.3.0' });
  const tagged = await startMarketplace();
  expect(await tagged.call(installPlugin, { body: { source: `${NAME}@old` } })).toMatchObject({
    version: '1.0.0',
  });
}, 120_000);

test('an archive that is not what the registry announced is refused', async () => {
  await registry.publish('1.0.0');
  await registry.forge('1.0.0');
  const daemon = await startMarketplace();
  await expect(daemon.call(installPlugin, { body: { source: NAME } })).rejects.toMatchObject({
    code: 'UPSTREAM_UNAVAILABLE',
    message: expect.stringMatching(/integrity|EINTEGRITY/i),
  });
  await expect(daemon.call(getPlugin, { params })).rejects.toMatchObject({ code: 'PLUGIN_NOT_FOUND' });
}, 120_000);
