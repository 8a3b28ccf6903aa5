import { createHmac } from 'node:crypto';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { type CrashPlatform, createCrashPlatform } from './crash-platform.ts';

export interface UpgradeReport {
  /** Deliveries answered 202 or 200. */
  accepted: number;
  /** Accepted deliveries never handled: must be 0. */
  lost: number;
  /** Requests retried because no gateway was listening during the replacement. */
  sentAgain: number;
  /** Services running the new build. */
  upgraded: string[];
  /** Time from the command until all services are ready. */
  restartMs: number;
}

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: 'inbox',
  version: '1.0.0',
  permissions: { fs: { write: ['./handled.log'], read: ['./handled.log'] } },
  webhooks: [
    {
      event: 'order',
      handler: 'hooks.js#handle',
      async: true,
      auth: { type: 'hmac', header: 'x-signature' },
      idempotencyKey: 'id',
      rateLimit: { requestsPerMinute: 1_000_000_000 },
    },
  ],
};
const HANDLER = `import { appendFileSync } from 'node:fs';
const file = new URL('./handled.log', import.meta.url);
export const handle = (ctx, { id }) => { appendFileSync(file, id + '\\n'); return null; };
`;
const SENDERS = 4;
const SETTLE_MS = 60_000;

/** Replaces the build of a platform under load, restarts it, and counts deliveries. */
export async function upgradeRun(): Promise<UpgradeReport> {
  const copy = copyPackage();
  const platform = await createCrashPlatform(copy);
  const plugin = join(platform.folder, 'plugins', 'inbox');
  const handled = join(plugin, 'handled.log');
  const restarts = join(platform.folder, 'restarts.log');
  try {
    mkdirSync(plugin, { recursive: true });
    writeFileSync(join(plugin, 'svc.plugin.json'), JSON.stringify(MANIFEST));
    writeFileSync(join(plugin, 'package.json'), '{"type":"module"}');
    writeFileSync(join(plugin, 'hooks.js'), HANDLER);
    for (const file of [handled, restarts]) writeFileSync(file, '');
    await platform.svc('up', '-d');
    const load = await startSenders(platform);
    await sleep(500);
    installNewBuild(copy, restarts);
    const startedAt = performance.now();
    await platform.svc('restart');
    const restartMs = performance.now() - startedAt;
    await sleep(500);
    const { accepted, sentAgain } = await load.stop();
    const lost = await stillMissing(accepted, handled);
    const upgraded = [...new Set(linesOf(restarts))].sort();
    return { accepted: accepted.size, lost, sentAgain, upgraded, restartMs };
  } finally {
    await platform.dispose();
    rmSync(copy, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Copies an installed package: the build and its dependencies, without sources. */
function copyPackage(): string {
  const copy = mkdtempSync(join(tmpdir(), 'svc-package-'));
  for (const name of ['bin', 'config', 'dist', 'package.json'])
    cpSync(join(packageRoot, name), join(copy, name), { recursive: true });
  symlinkSync(join(packageRoot, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** Replaces the build folder like an update. The new services write their names to `logFile` when they start. */
function installNewBuild(copy: string, logFile: string): void {
  const [dist, next, old] = ['dist', 'dist.new', 'dist.old'].map((name) => join(copy, name)) as [
    string,
    string,
    string,
  ];
  cpSync(dist, next, { recursive: true });
  const logStart = `import { appendFileSync } from 'node:fs';\nappendFileSync(${JSON.stringify(logFile)}, process.argv[2] + '\\n');\n`;
  writeFileSync(join(next, 'daemon.js'), logStart + readFileSync(join(next, 'daemon.js'), 'utf8'));
  renameSync(dist, old);
  renameSync(next, dist);
  rmSync(old, { recursive: true });
}

async function startSenders(platform: CrashPlatform) {
  const { secret } = (await platform.svc('webhooks', 'provision', 'inbox', 'order')).json.result;
  const gateway = (await platform.status()).services.find(({ name }) => name === 'gateway')!.url!;
  const accepted = new Set<string>();
  let [sentAgain, stopped] = [0, false];

  /** Retries after an error or a 5xx, like real senders. */
  async function deliver(id: string): Promise<void> {
    const body = JSON.stringify({ id });
    const signature = createHmac('sha256', secret).update(body).digest('hex');
    const headers = {
      'content-type': 'application/json',
      'x-svc-namespace': 'default',
      'x-signature': signature,
    };
    for (;;) {
      try {
        const response = await fetch(`${gateway}/webhooks/inbox/order`, { method: 'POST', headers, body });
        await response.arrayBuffer();
        if (response.status < 300) return void accepted.add(id);
      } catch {
        // No gateway is listening at the moment.
      }
      sentAgain++;
      await sleep(20);
    }
  }
  const run = async (sender: number): Promise<void> => {
    for (let n = 0; !stopped; n++) await deliver(`${sender}-${n}`);
  };
  const done = Promise.all(Array.from({ length: SENDERS }, (_, sender) => run(sender)));
  return {
    async stop() {
      stopped = true;
      await done;
      return { accepted, sentAgain };
    },
  };
}

async function stillMissing(accepted: ReadonlySet<string>, handled: string): Promise<number> {
  for (let waited = 0; ; waited += 100) {
    const seen = new Set(linesOf(handled));
    const missing = [...accepted].filter((id) => !seen.has(id)).length;
    if (missing === 0 || waited >= SETTLE_MS) return missing;
    await sleep(100);
  }
}

const linesOf = (file: string): string[] => readFileSync(file, 'utf8').split('\n').filter(Boolean);
