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
import { generateLoad } from './support/load.ts';
import { cpuUsOf } from './support/process-usage.ts';
import { type BenchResult, median, quantile, round } from './support/result.ts';

const ROUNDS = 3;
const TOKEN = 'bench-token';
const MESSAGES = 10_000;
/** Rate at which the time from emit to receipt is measured, so that it contains no waiting behind a backlog. */
const PACED = 500;
const PACED_MESSAGES = 2000;

/** Connections that publish by HTTP, each with one request in flight. */
const CONNECTIONS = 64;
const HTTP_MS = 2000;

interface Receiver {
  url: string;
  child: ChildProcess;
}
interface Count {
  received: number;
  wrong: number;
  waits: number[];
}
interface Emitter {
  name: string;
  child: ChildProcess;
  /** Port of the gateway. Undefined for the bare loop. */
  port: number | undefined;
  /** Pid of the PostgreSQL server. */
  serverPid: number | undefined;
}
interface Round {
  perSecond: number;
  /** CPU time per message in us. */
  cpu: { sender: number; receiver: number; server: number };
}
interface World {
  receiver: Receiver;
  emitters: Emitter[];
  secret: string;
}

/** Messages per second to one signed receiver in another process, beside a loop that stores nothing. */
export async function run(): Promise<BenchResult> {
  const cleanUps = new AsyncDisposableStack();
  try {
    return await measureAll(await startWorld(cleanUps));
  } finally {
    await cleanUps.disposeAsync();
  }
}

async function measureAll(world: World): Promise<BenchResult> {
  const { receiver, emitters, secret } = world;
  const emitted = new Map<Emitter, Round[]>();
  const posted = new Map<Emitter, Round[]>();
  for (let n = 0; n <= ROUNDS; n++)
    for (const emitter of emitters) {
      const round = await measureEmits(world, emitter);
      // The first round warms up.
      if (n > 0) emitted.set(emitter, [...(emitted.get(emitter) ?? []), round]);
      if (emitter.port === undefined) continue;
      const post = await measurePosts(world, emitter);
      if (n > 0) posted.set(emitter, [...(posted.get(emitter) ?? []), post]);
    }
  const bare = median(emitted.get(emitters[0]!)!.map(({ perSecond }) => perSecond));
  const rows = [];
  for (const [emitter, rounds] of emitted) {
    const waits = await measureWaits(receiver, emitter.child, secret);
    rows.push({
      ...rowOf(emitter.name, rounds, bare),
      ...{ [`p50 ms at ${PACED}/s`]: quantile(waits, 0.5), 'p99 ms': quantile(waits, 0.99) },
    });
  }
  for (const [emitter, rounds] of posted) rows.push(rowOf(`${emitter.name}, by HTTP`, rounds, bare));
  return {
    name: 'Messages to one signed receiver, 0.5 KB',
    rows,
    note: `Medians of ${ROUNDS} interleaved rounds of ${MESSAGES} messages, from the first emit to the last receipt. The receiver is another process and checks each signature. The bare loop signs and sends with undici, 16 at a time, and stores nothing. svc: emitted in the gateway, as a plugin's \`ctx.emit\` arrives there; each message is on disk before its emit resolves. By HTTP: \`POST /api/v1/messages\` on ${CONNECTIONS} connections from another process for ${HTTP_MS / 1000} s. CPU per message: of the sender with all its threads, of the receiver, and of PostgreSQL. All processes share the cores.`,
  };
}

function rowOf(sender: string, rounds: readonly Round[], bare: number): BenchResult['rows'][number] {
  const perSecond = median(rounds.map((each) => each.perSecond));
  const cpu = (of: keyof Round['cpu']): number => round(median(rounds.map((each) => each.cpu[of])));
  return {
    ...{ sender, 'messages/s': round(perSecond), 'of the bare loop': round(perSecond / bare, 2) },
    ...{ 'CPU us': cpu('sender'), 'receiver us': cpu('receiver'), 'PostgreSQL us': cpu('server') },
  };
}

async function startWorld(cleanUps: AsyncDisposableStack): Promise<World> {
  const secret = randomBytes(32).toString('base64');
  const receiver = await startReceiver();
  cleanUps.defer(() => void receiver.child.kill());
  const emitters: Emitter[] = [];
  const add = async (name: string, folder: string, serverPid?: number): Promise<void> => {
    const { child, port } = await startEmitter(folder, receiver.url, secret);
    cleanUps.defer(() => void child.kill());
    emitters.push({ name, child, port, serverPid });
  };
  await add('bare loop', 'bare');
  await add('svc on SQLite', await projectOf({}, cleanUps));
  if (!postgresPrograms()) return { receiver, emitters, secret };
  const server = await PostgresServer.start();
  cleanUps.defer(() => server.remove());
  const url = server.url();
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-bench' });
  await migratePostgres(database);
  await database.close();
  await add('svc on PostgreSQL', await projectOf({ store: { url } }, cleanUps), await server.pid());
  return { receiver, emitters, secret };
}

async function startReceiver(): Promise<Receiver> {
  const child = fork(join(import.meta.dirname, 'support/message-receiver.ts'), { stdio: 'inherit' });
  const [{ url }] = (await once(child, 'message')) as [{ url: string }];
  return { url, child };
}

async function startEmitter(
  folder: string,
  url: string,
  secret: string,
): Promise<{ child: ChildProcess; port?: number }> {
  const file = join(import.meta.dirname, 'support/message-emitter.ts');
  const child = fork(file, [folder, url, secret, TOKEN], { stdio: 'inherit' });
  const [{ port }] = (await once(child, 'message')) as [{ port?: number }];
  return { child, port };
}

async function projectOf(config: object, cleanUps: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  cleanUps.defer(() => rm(folder, { recursive: true, force: true }));
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

async function measureEmits(world: World, emitter: Emitter): Promise<Round> {
  return measure(world, emitter, async () => {
    emitter.child.send({ count: MESSAGES });
    return MESSAGES;
  });
}

async function measurePosts(world: World, emitter: Emitter): Promise<Round> {
  const { port } = emitter;
  let n = 0;
  const request = (): string => {
    const body = JSON.stringify({ type: 'x', data: { at: Date.now(), n: n++, text: 'x'.repeat(400) } });
    return `POST /api/v1/messages HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${TOKEN}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  };
  return measure(world, emitter, async () => {
    const load = { port: port!, connections: CONNECTIONS, durationMs: HTTP_MS, request };
    const { answered, statuses } = await generateLoad(load);
    if (statuses['202'] !== answered) throw new Error(`The gateway answered ${JSON.stringify(statuses)}`);
    return answered;
  });
}

/** Measures from the call of `start`, which resolves with the number of messages, to the last receipt. */
async function measure(
  { receiver, secret }: World,
  { child, serverPid }: Emitter,
  start: () => Promise<number>,
): Promise<Round> {
  await ask(receiver, { key: secret });
  const pids = { sender: child.pid!, receiver: receiver.child.pid!, server: serverPid };
  const cpuTimes = () => mapValues(pids, (pid) => (pid === undefined ? 0 : cpuUsOf(pid)));
  const before = cpuTimes();
  const startedAt = performance.now();
  const count = await start();
  while ((await ask(receiver, { count: 'number' })).received < count) await sleep(10);
  const perSecond = (count / (performance.now() - startedAt)) * 1000;
  // The ends of the last attempts are not written yet.
  await sleep(100);
  const after = cpuTimes();
  return { perSecond, cpu: mapValues(after, (value, of) => (value - before[of]) / count) };
}

function mapValues<Key extends string, From, To>(
  from: Record<Key, From>,
  to: (value: From, key: Key) => To,
): Record<Key, To> {
  const pairs = (Object.entries(from) as Array<[Key, From]>).map(([key, value]) => [key, to(value, key)]);
  return Object.fromEntries(pairs) as Record<Key, To>;
}

async function measureWaits(receiver: Receiver, emitter: ChildProcess, key: string): Promise<number[]> {
  await ask(receiver, { key });
  emitter.send({ count: PACED_MESSAGES, perSecond: PACED });
  while ((await ask(receiver, { count: 'number' })).received < PACED_MESSAGES) await sleep(50);
  return (await ask(receiver, { count: 'waits' })).waits;
}

if (import.meta.main) console.log(JSON.stringify(await run(), null, 2));
