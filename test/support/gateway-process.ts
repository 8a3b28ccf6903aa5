import { type ChildProcess, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { tempDir } from './daemon.ts';
import { ADMIN_TOKEN } from './gateway.ts';
import { freePort } from './ports.ts';

export interface KillableGateway {
  url: string;
  /** Starts it, again after a kill: on the same folder, port and keys. */
  start(): Promise<ChildProcess>;
  /** Dispatches a handler of the fixture plugin. */
  call(handler: string, body?: object): Promise<Response>;
}

/** A gateway in a process of its own, that may be killed at any time. */
export async function createKillableGateway(config: object): Promise<KillableGateway> {
  const folder = await tempDir();
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify(config));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    async start() {
      const file = join(packageRoot, 'bench/support/gateway-process.ts');
      const child = spawn(process.execPath, [file, folder, String(port), ADMIN_TOKEN], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      onTestFinished(() => void child.kill('SIGKILL'));
      await new Promise<void>((resolve, reject) => {
        child.stdout.once('data', () => resolve());
        child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}`)));
      });
      return child;
    },
    call: (handler, body = {}) =>
      fetch(`${url}/internal/dispatch`, {
        method: 'POST',
        headers: { 'x-internal-secret': 'i'.repeat(40), 'content-type': 'application/json' },
        body: JSON.stringify({ plugin: { id: '@acme/tools' }, handler: `handlers.js#${handler}`, ...body }),
      }),
  };
}
