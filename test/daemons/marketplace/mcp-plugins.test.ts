import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  getPlugin,
  installPlugin,
  MANIFEST_FILE,
  type McpPluginSource,
  mcpSourceText,
  planPlugin,
  McpPluginSource as Source,
  updatePlugin,
} from '../../../src/contracts/index.ts';
import { SANDBOXES } from '../../plugins/support.ts';
import { startRegistry } from './registry.ts';
import { startMarketplace, type TestMarketplace } from './support.ts';

const HOSTILE = join(import.meta.dirname, '../../fixtures/mcp/hostile.js');
const PACKAGE = '@evil/server-hostile';

const text = (more: Partial<McpPluginSource> = {}) =>
  mcpSourceText(Source.parse({ id: 'hostile', package: PACKAGE, ...more }));
const add = (daemon: TestMarketplace, more?: Partial<McpPluginSource>) =>
  daemon.call(installPlugin, { body: { source: text(more) } });

/** A registry with the hostile server. */
async function registry() {
  const opened = await startRegistry();
  const program = await readFile(HOSTILE, 'utf8');
  const publish = (version: string, manifest: object = {}) =>
    opened.publish(PACKAGE, version, {
      'package.json': { name: PACKAGE, version, type: 'module', bin: 'hostile.js', ...manifest },
      'hostile.js': program,
    });
  await publish('1.2.3', { scripts: { postinstall: 'touch /tmp/was-run' } });
  return { ...opened, publish };
}

const onKernel = test.skipIf(!SANDBOXES.includes('bwrap'));

onKernel('a package becomes a plugin with a command for each tool', { timeout: 120_000 }, async () => {
  await registry();
  const daemon = await startMarketplace();
  const plugin = await add(daemon);
  expect(plugin).toMatchObject({
    id: 'hostile',
    version: '1.2.3',
    status: 'loaded',
    resolved: `${PACKAGE}@1.2.3`,
    permissions: { network: [], platform: { childProcess: 'sandboxed', state: false } },
    mcpServer: { package: PACKAGE, version: '1.2.3', url: null },
  });
  expect(plugin.commands.slice(0, 2)).toEqual([
    { id: 'hostile_echo', description: 'Returns its input.' },
    { id: 'hostile_typed', description: 'The tool typed.' },
  ]);
  const { mcpServer } = JSON.parse(await readFile(join(plugin.root, MANIFEST_FILE), 'utf8'));
  expect(mcpServer).toMatchObject({ entry: `node_modules/${PACKAGE}/hostile.js`, tools: expect.any(Array) });
  expect(mcpServer.tools[0].digest).toMatch(/^sha256-/);
  const lock = JSON.parse(await readFile(join(plugin.root, 'package-lock.json'), 'utf8'));
  expect(Object.keys(lock.packages)).toContain(`node_modules/${PACKAGE}`);
});
void [getPlugin, planPlugin, updatePlugin];
