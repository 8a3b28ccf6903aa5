import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { packageRoot } from '../src/kit/files/paths.ts';
import { tempDir } from './support/daemon.ts';
import { createPlatform, type Platform } from './support/platform.ts';
import { freePort } from './support/ports.ts';

const HAS_PYTHON = spawnSync('python3', ['--version']).status === 0;
const LEASE_MS = 30_000;
const KILLS = 3;
const ITEMS_PER_LIFE = 60;

interface Handled {
  id: string;
  worker: number;
  at: number;
}

/** Starts the program of docs/queues.md as it is written there. */
async function startWorker(
  worker: number,
  env: Record<string, string>,
  handled: Handled[],
): Promise<ChildProcess> {
  const page = await readFile(join(packageRoot, 'docs/queues.md'), 'utf8');
  const [, code] = /<!-- file: worker\.py -->\n\n```python\n([\s\S]*?)```/.exec(page)!;
  const file = join(await tempDir(), 'worker.py');
  await writeFile(file, code!);
  const child = spawn('python3', [file], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  createInterface({ input: child.stdout! }).on('line', (line) => {
    handled.push({ id: line.split(' ')[0]!, worker, at: performance.now() });
  });
  return child;
}

/** Kills every process of the platform at once, as a power cut would. */
async function killPlatform(platform: Platform): Promise<void> {
  const { services, pid } = (await platform.svc('status')).envelope.result;
  for (const each of [pid, ...services.map((service: { pid: number }) => service.pid)])
    process.kill(each, 'SIGKILL');
}

describe.skipIf(!HAS_PYTHON)(
  HAS_PYTHON ? 'docs/queues.md' : 'Python is not installed: apt install python3',
  { timeout: 240_000 },
  () => {
    test('programs lose nothing when the platform is killed, and repeat nothing within a lease', async () => {
      const queues = { orders: { leaseMs: LEASE_MS } };
      const platform = await createPlatform({ queues, gateway: { port: await freePort() } });
      onTestFinished(() => platform.dispose());
      const url = await platform.up();
      const { token } = (await platform.svc('tokens', 'mint', 'worker')).envelope.result;
      const handled: Handled[] = [];
      for (const worker of [1, 2]) await startWorker(worker, { SVC_URL: url, SVC_TOKEN: token }, handled);

      const accepted: string[] = [];
      /** Repeats a put until the platform has answered. The id makes that harmless. */
      const put = async (id: string): Promise<void> => {
        for (;;) {
          const answer = await fetch(`${url}/api/v1/queues/orders/items`, {
            method: 'POST',
            headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
            body: JSON.stringify({ id, body: { id } }),
          }).catch(() => undefined);
          if (answer?.ok) return void accepted.push(id);
          await sleep(100);
        }
      };
      for (let life = 0; life < KILLS; life++) {
        const putting = (async () => {
          for (let n = 0; n < ITEMS_PER_LIFE; n++) await put(`item-${life}-${n}`);
        })();
        const before = handled.length;
        await vi.waitFor(() => expect(handled.length).toBeGreaterThan(before + 5), { timeout: 60_000 });
        await killPlatform(platform);
        await platform.up();
        await putting;
      }
      const missing = () => accepted.filter((id) => !handled.some((each) => each.id === id));
      // Items whose lease was answered by nobody are given out again when the lease expires.
      await vi.waitFor(() => expect(missing()).toEqual([]), {
        timeout: 2 * LEASE_MS + 30_000,
        interval: 200,
      });
      expect(accepted).toHaveLength(KILLS * ITEMS_PER_LIFE);
      for (const [id, times] of Map.groupBy(handled, (each) => each.id)) {
        for (const [n, { at }] of times.entries())
          if (n > 0) expect([id, at - times[n - 1]!.at > LEASE_MS * 0.9]).toEqual([id, true]);
      }
      await vi.waitFor(async () => {
        const answer = await fetch(`${url}/api/v1/queues/orders`, {
          headers: { authorization: `Bearer ${token}` },
        });
        expect(await answer.json()).toMatchObject({ waiting: 0, leased: 0, dead: 0 });
      });
    });
  },
);
