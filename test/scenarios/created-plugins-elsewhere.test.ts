import { cp, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writePlugin } from '../../src/cli/commands/plugins/create.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { state } from '../../src/daemons/state/index.ts';
import { packageRoot } from '../../src/kit/paths.ts';
import { startTestAgent } from '../agent/support.ts';
import { engineMissing, startEngine, type TestEngine } from '../plugins/engine.ts';
import { startTestDaemon, TEST_KEYS, tempDir } from '../support/daemon.ts';
import { startGateway } from '../support/gateway.ts';

/** Plugins as `svc plugins create` makes them, run where this machine's package is not. */
const BACKENDS = ['host', ...(engineMissing === undefined ? (['container'] as const) : [])] as const;

let engine: TestEngine | undefined;

beforeAll(async () => {
  if (engineMissing === undefined) engine = await startEngine();
}, 120_000);
afterAll(async () => {
  await engine?.stop();
}, 60_000);

const platformOf = (folder: string) => join(folder, 'node_modules/svc-platform');

/** Ways in which the platform lies in a plugin's folder. */
const FORMS: Record<string, (folder: string) => Promise<void>> = {
  'as it was created': async () => {},
  async 'with the platform installed from a tarball'(folder) {
    const platform = platformOf(folder);
    await rm(platform, { recursive: true });
    await mkdir(join(platform, 'bin'), { recursive: true });
    await cp(join(packageRoot, 'package.json'), join(platform, 'package.json'));
    await writeFile(join(platform, 'bin/svc'), 'throw new Error("not to be run");\n');
    await writeFile(join(folder, 'node_modules/.package-lock.json'), '{}\n');
    await mkdir(join(folder, 'vendor'), { recursive: true });
    await writeFile(join(folder, 'vendor/svc-platform.tgz'), 'a tarball');
  },
  async 'with the platform linked as a whole'(folder) {
    await rm(platformOf(folder), { recursive: true });
    await symlink(packageRoot, platformOf(folder));
  },
};

describe.each(BACKENDS)('on a %s', { timeout: 90_000 }, (backend) => {
  test.each(Object.keys(FORMS))('a created plugin runs %s', async (form) => {
    const projectDir = await tempDir();
    const folder = join(projectDir, 'plugins/hello');
    await mkdir(folder, { recursive: true });
    await writePlugin(folder, 'command', 'hello');
    await FORMS[form]!(folder);
    const keeper = await startTestDaemon(state);
    const gateway = await startGateway({
      projectDir,
      peers: createPeers({ state: keeper.url }),
      config: {
        execution: { default: backend, ...(engine ? { container: { socket: engine.socket } } : {}) },
      },
    });
    if (backend === 'host') await startTestAgent(gateway);
    const { commands } = (gateway.services as { plugins: { registry: Registry } }).plugins.registry.require(
      'hello',
    ).manifest;
    const reply = await gateway.fetch('/internal/dispatch', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-internal-secret': TEST_KEYS.internalSecret },
      body: JSON.stringify({
        plugin: { id: 'hello' },
        handler: commands[0]!.handler,
        input: { name: 'Ada' },
      }),
    });
    expect([reply.status, await reply.json()]).toMatchObject([200, { result: { exitCode: 0 } }]);
  });
});

interface Registry {
  require(id: string): { manifest: { commands: Array<{ handler: string }> } };
}
