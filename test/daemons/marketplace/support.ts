import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { CallInput, Endpoint, ReplyOf } from '../../../src/contracts/index.ts';
import { marketplace } from '../../../src/daemons/marketplace/index.ts';
import { createClient, serviceHeaders } from '../../../src/http/index.ts';
import { minutes } from '../../../src/kit/time/duration.ts';
import {
  startTestDaemon,
  TEST_KEYS,
  TEST_OPERATOR,
  type TestDaemonOptions,
  tempDir,
} from '../../support/daemon.ts';

export type Files = Record<string, string | object>;

export async function writeFiles(folder: string, files: Files): Promise<string> {
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  }
  return folder;
}

/** A plugin that answers `greet` with its version. */
export function greeter(version = '1.0.0', manifest: object = {}, files: Files = {}): Files {
  const id = (manifest as { id?: string }).id ?? '@acme/greeter';
  return {
    'package.json': { name: id, version, type: 'module' },
    'svc.plugin.json': {
      schema: 'svc.plugin/3',
      id,
      version,
      commands: [{ id: `greet-${id.replace(/\W/g, '')}`, handler: 'h.js#greet' }],
      ...manifest,
    },
    'h.js': `export const greet = () => 'hello from ${version}';`,
    ...files,
  };
}

/** A folder with a plugin in it. */
export async function pluginFolder(files: Files = greeter()): Promise<string> {
  return writeFiles(await tempDir(), files);
}

/** The same as an npm archive. */
export async function pluginArchive(files: Files = greeter()): Promise<string> {
  const folder = await tempDir();
  await writeFiles(join(folder, 'package'), files);
  execFileSync('tar', ['-czf', 'plugin.tgz', 'package'], { cwd: folder });
  return join(folder, 'plugin.tgz');
}

/** The real daemon; calls are the operator's, unless a host is named. */
export async function startMarketplace(options: TestDaemonOptions = {}) {
  const dataDir = options.dataDir ?? join(await tempDir(), '.svc');
  const projectDir = options.projectDir ?? dirname(dataDir);
  const daemon = await startTestDaemon(marketplace, { ...options, dataDir, projectDir });
  // An installation may fetch over the network: the gateway and the REST API wait as long.
  const client = createClient({ url: daemon.url, peer: 'marketplace', timeoutMs: minutes(2) });
  return {
    ...daemon,
    call: <E extends Endpoint>(
      endpoint: E,
      input?: CallInput<E>,
      hostId: string = TEST_OPERATOR.hostId,
    ): Promise<ReplyOf<E>> =>
      client.call(endpoint, input, {
        headers: serviceHeaders(TEST_KEYS.internalSecret, { hostId, namespaceId: 'default' }),
      }),
  };
}
export type TestMarketplace = Awaited<ReturnType<typeof startMarketplace>>;
