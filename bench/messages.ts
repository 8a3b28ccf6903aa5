import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { silentLogger } from '../src/kit/telemetry/logger.ts';
import { PostgresDatabase } from '../src/store/postgres/database.ts';
import { migratePostgres } from '../src/store/postgres/migrate.ts';
import { PostgresServer, postgresPrograms } from './support/cluster/postgres-server.ts';
import { type BenchResult, median, quantile, round } from './support/result.ts';

const ROUNDS = 3;
const MESSAGES = 10_000;
/** Rate at which the time from emit to receipt is measured, so that it contains no waiting behind a backlog. */
const PACED = 500;
const PACED_MESSAGES = 2000;

interface Receiver {
  url: string;
  child: ChildProcess;
}
interface Count {
  received: number;
  wrong: number;
  waits: number[];
}

/** Messages per second to one signed receiver in another process, beside a loop that stores nothing. */
export async function run(): Promise<BenchResult> {
  const cleanUps: Array<() => Promise<unknown>> = [];
  const secret = randomBytes(32).toString('base64');
  try {
    const receiver = await startReceiver();
    cleanUps.push(async () => receiver.child.kill());
    const emitters = new Map<string, ChildProcess>();
    const add = async (name: string, folder: string): Promise<void> => {
      const child = await startEmitter(folder, receiver.url, secret);
      cleanUps.push(async () => child.kill());
      emitters.set(name, child);
    };
    await add('bare loop', 'bare');
    await add('svc on SQLite', await projectOf({}, cleanUps));
    if (postgresPrograms()) {
      const server = await PostgresServer.start();
      cleanUps.push(() => server.remove());
      const url = server.url();
      const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-bench' });
      await migratePostgres(database);
      await database.close();
      await add('svc on PostgreSQL', await projectOf({ store: { url } }, cleanUps));
    }
    const rates = new Map<string, number[]>();
    for (let n = 0; n <= ROUNDS; n++)
      for (const [name, child] of emitters) {
        const rate = await measureRate(receiver, child, secret);
        // The first round warms up.
        if (n > 0) rates.set(name, [...(rates.get(name) ?? []), rate]);
      }
    const bare = median(rates.get('bare loop')!);
    const rows = [];
    for (const [name, child] of emitters) {
      const rate = median(rates.get(name)!);
      const waits = await measureWaits(receiver, child, secret);
      rows.push({
        ...{ sender: name, 'messages/s': round(rate), 'of the bare loop': round(rate / bare, 2) },
        ...{ [`p50 ms at ${PACED}/s`]: quantile(waits, 0.5), 'p99 ms': quantile(waits, 0.99) },
      });
    }
    return {
      name: 'Messages to one signed receiver, 0.5 KB',
      rows,
      note: `Medians of ${ROUNDS} interleaved rounds of ${MESSAGES} messages, from the first emit to the last receipt. The receiver is another process and checks each signature. The bare loop signs and sends with undici, 16 at a time, and stores nothing. svc: emitted in the gateway, as a plugin's \`ctx.emit\` arrives there; each message is on disk before its emit resolves. All processes share the cores.`,
    };
  } finally {
    for (const cleanUp of cleanUps.toReversed()) await cleanUp();
  }
}

async function startReceiver(): Promise<Receiver> {
  const child = fork(join(import.meta.dirname, 'support/message-receiver.ts'), { stdio: 'inherit' });
  const [{ url }] = (await once(child, 'message')) as [{ url: string }];
  return { url, child };
}

async function startEmitter(folder: string, url: string, secret: string): Promise<ChildProcess> {
  const file = join(import.meta.dirname, 'support/message-emitter.ts');
  const child = fork(file, [folder, url, secret], { stdio: 'inherit' });
  await once(child, 'message');
  return child;
}

async function projectOf(config: object, cleanUps: Array<() => Promise<unknown>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  cleanUps.push(() => rm(folder, { recursive: true, force: true }));
  const outgoing = { allowPrivateAddresses: true };
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify({ ...config, outgoing }));
  return folder;
}

async function ask({ child }: Receiver, question: object): Promise<Count> {
  child.send(question);
  const [count] = (await once(child, 'message')) as [Count];
  if (count.wrong > 0) throw new Error(`${count.wrong} signatures were wrong.`);
  return count;
}

async function measureRate(receiver: Receiver, emitter: ChildProcess, key: string): Promise<number> {
  await ask(receiver, { key });
  const startedAt = performance.now();
  emitter.send({ count: MESSAGES });
  while ((await ask(receiver, { count: 'number' })).received < MESSAGES) await sleep(10);
  return (MESSAGES / (performance.now() - startedAt)) * 1000;
}

async function measureWaits(receiver: Receiver, emitter: ChildProcess, key: string): Promise<number[]> {
  await ask(receiver, { key });
  emitter.send({ count: PACED_MESSAGES, perSecond: PACED });
  while ((await ask(receiver, { count: 'number' })).received < PACED_MESSAGES) await sleep(50);
  return (await ask(receiver, { count: 'waits' })).waits;
}

if (import.meta.main) console.log(JSON.stringify(await run(), null, 2));
