import { lstat, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createPeers } from '../../src/daemons/peers.ts';
import { state } from '../../src/daemons/state/index.ts';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { startTestAgent } from '../agent/support.ts';
import { engineMissing, type TestEngine } from '../plugins/engine.ts';
import { useEngine } from '../support/containers.ts';
import { type CreatedPlugin, createPlugin } from '../support/created-plugin.ts';
import { startTestDaemon, TEST_KEYS } from '../support/daemon.ts';
import { startGateway } from '../support/gateway.ts';

/** Plugins as `svc plugins create` makes them, run where this machine's package is not. */
const BACKENDS = ['host', ...(engineMissing === undefined ? (['container'] as const) : [])] as const;

let engine: TestEngine | undefined;
if (engineMissing === undefined)
  useEngine('podman', (started) => {
    engine = started;
  });

const platformOf = (folder: string) => join(folder, 'node_modules/svc-platform');

/** Ways in which the platform lies in a plugin's folder. */
const FORMS: Record<string, (plugin: CreatedPlugin) => Promise<void>> = {
  'as it was created': async () => {},
  async 'after npm install of the vendored archive'({ folder, npm }) {
    expect(await npm(folder, 'install')).toMatchObject({ code: 0 });
    // The archive is unpacked there, with its program and the packages inside.
    expect((await lstat(join(platformOf(folder), 'bin/svc'))).isFile()).toBe(true);
    expect((await lstat(join(platformOf(folder), 'node_modules/better-sqlite3'))).isDirectory()).toBe(true);
  },
  async 'with the platform linked as a whole'({ folder }) {
    await rm(platformOf(folder), { recursive: true });
    await symlink(packageRoot, platformOf(folder));
  },
};

describe.each(BACKENDS)('on a %s', (backend) => {
  test.each(Object.keys(FORMS))('a created plugin runs %s', async (form) => {
    const plugin = await createPlugin('hello', '--template', 'command');
    await FORMS[form]!(plugin);
    const keeper = await startTestDaemon(state);
    const gateway = await startGateway({
      projectDir: plugin.project,
      peers: createPeers({ state: keeper.url }),
      config: {
        execution: { default: backend, ...(engine ? { container: { socket: engine.socket } } : {}) },
      },
    });
    if (backend === 'host') await startTestAgent(gateway);
    const greet = async () => {
      const reply = await gateway.fetch('/internal/dispatch', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-internal-secret': TEST_KEYS.internalSecret },
        body: JSON.stringify({
          plugin: { id: 'hello' },
          handler: 'commands.js#greet',
          input: { name: 'Ada' },
        }),
      });
      return [reply.status, await reply.json()];
    };
    const greeting = 'Hello Ada';
    expect(await greet()).toMatchObject([
      200,
      { result: { exitCode: 0, result: { greeting, greetedBefore: 0 } } },
    ]);
    expect(await greet()).toMatchObject([
      200,
      { result: { exitCode: 0, result: { greeting, greetedBefore: 1 } } },
    ]);
  });
});
