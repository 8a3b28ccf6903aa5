import { existsSync, readdirSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { stageData } from '../../../src/cli/commands/backup/stage.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { days } from '../../../src/kit/duration.ts';
import { type Logger, silentLogger } from '../../../src/kit/logger.ts';
import { systemRandom } from '../../../src/kit/random.ts';
import type { GatewayStore, NewDelivery } from '../../../src/store/ports/index.ts';
import { type SqliteStoreOptions, sqliteGatewayStore } from '../../../src/store/sqlite/index.ts';
import { readFrames, roomFor, SALT_BYTES, writeFrame } from '../../../src/store/sqlite/journal/frame.ts';
import { tempDir } from '../../support/daemon.ts';
import { fillDisk } from '../../support/full-disk.ts';
import { startProgram } from './programs/start.ts';

const random = systemRandom();
const inAWeek = (): number => systemClock.now() + days(7);

async function openStore(
  dataDir: string,
  logger: Logger = silentLogger,
  options: Partial<SqliteStoreOptions> = {},
) {
  const store = await sqliteGatewayStore({ dataDir, clock: systemClock, logger, shared: false, ...options });
  onTestFinished(() => store.close());
  return store;
}

function delivery(more: Partial<NewDelivery> = {}): NewDelivery {
  return {
    webhookId: random.uuid(),
    namespaceId: 'acme',
    pluginId: 'p',
    event: 'e',
    instanceId: '',
    receivedAt: systemClock.now(),
    source: '::1',
    requestId: 'r',
    traceId: 't',
    headers: '[]',
    body: null,
    bodyBytes: 0,
    mode: 'async',
    origin: 'sender',
    replayOf: null,
    orderKey: null,
    ...more,
  };
}

async function records({ inbox }: GatewayStore): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (let before: number | undefined; ; ) {
    const { items, next } = await inbox.list('acme', { limit: 1000, before });
    for (const { webhookId, status } of items) found.set(webhookId, status);
    if (next === null) return found;
    before = next;
  }
}

/** A journal's files with what was written to them, and the folder that they lie in. */
const journalOf = (dataDir: string): string => join(dataDir, 'inbox');

interface Acknowledged {
  accepted: Map<string, string>;
  ended: Set<string>;
}

function readLines(lines: readonly string[], into: Acknowledged): void {
  for (const line of lines) {
    const [what, webhookId, key] = line.split(' ') as [string, string, string];
    if (what === 'accepted') into.accepted.set(webhookId, key);
    else into.ended.add(webhookId);
  }
}

async function expectAll(store: GatewayStore, { accepted, ended }: Acknowledged): Promise<void> {
  const found = await records(store);
  expect([...accepted.keys()].filter((id) => !found.has(id))).toEqual([]);
  expect([...ended].filter((id) => found.get(id) !== 'succeeded')).toEqual([]);
  const some = [...accepted.values()].filter((_, n) => n % 97 === 0);
  for (const key of some) expect(await store.inbox.seen(key, systemClock.now())).toBe('done');
}

test('what was acknowledged is there after kill -9, time and again, whoever opens it next', async () => {
  const dataDir = await tempDir();
  const acknowledged: Acknowledged = { accepted: new Map(), ended: new Set() };
  let leftAny = 0;
  for (const round of ['a', 'b', 'c', 'd']) {
    const isCalm = round > 'b';
    const writer = startProgram('accept-deliveries', dataDir, round, ...(isCalm ? ['calm'] : []));
    await writer.printed(isCalm ? 800 : 2000);
    await writer.kill();
    readLines(writer.lines, acknowledged);
    leftAny += readdirSync(journalOf(dataDir)).length;
    // As one of several processes too, when the configuration has changed in between.
    const store = await openStore(dataDir, silentLogger, { shared: round === 'b' });
    expect(existsSync(journalOf(dataDir))).toBe(false);
    await expectAll(store, acknowledged);
    await store.close();
  }
  expect(leftAny).toBeGreaterThan(0);
});

test('a backup of a platform that was killed holds what the journal holds, and so does one made while it writes', async () => {
  const dataDir = await tempDir();
  const writer = startProgram('accept-deliveries', dataDir, 'a');
  await writer.printed(3000);
  const before: Acknowledged = { accepted: new Map(), ended: new Set() };
  readLines(writer.lines, before);
  const stages = [await tempDir(), await tempDir()] as const;
  const options = { dataDir, withKeys: true, withTelemetry: true };
  await stageData({ ...options, stage: stages[0] });
  await writer.kill();
  const whole: Acknowledged = { accepted: new Map(), ended: new Set() };
  readLines(writer.lines, whole);
  await stageData({ ...options, stage: stages[1] });
  await expectAll(await openStore(stages[0]), before);
  await expectAll(await openStore(stages[1]), whole);
});

test('frames are read back as they were written; of a file that was cut or changed, those before it', () => {
  const bytes = fc.uint8Array({ maxLength: 200 });
  const frame = fc.record({ units: fc.json(), parts: fc.array(bytes, { maxLength: 3 }) });
  fc.assert(
    fc.property(
      fc.array(frame, { maxLength: 6 }),
      fc.nat(),
      fc.integer({ min: 1, max: 255 }),
      (frames, at, flip) => {
        const salt = Buffer.alloc(SALT_BYTES, 7);
        const written = frames.map((each, n) => {
          const packed = { ...each, length: each.parts.reduce((sum, part) => sum + part.length, 0) };
          const target = Buffer.alloc(roomFor(packed));
          return target.subarray(0, writeFrame(target, packed, n + 1, salt));
        });
        const file = Buffer.concat([...written, Buffer.alloc(50)]);
        const read = [...readFrames(file)];
        expect(read.map(({ sequence, units }) => [sequence, units])).toEqual(
          frames.map(({ units }, n) => [n + 1, units]),
        );
        expect(read.map((each) => Buffer.from(each.bytes).toString('hex'))).toEqual(
          frames.map(({ parts }) => Buffer.concat(parts).toString('hex')),
        );

        const place = at % file.length;
        const whole = read.filter(({ end }) => end <= place).length;
        expect([...readFrames(file.subarray(0, place))]).toHaveLength(whole);
        const changed = Buffer.from(file);
        changed[place]! ^= flip;
        expect([...readFrames(changed)].length).toBe(whole);
      },
    ),
  );
});

test('what an earlier turn left behind the last frame is no frame, even if it looks like the next', () => {
  const packed = { units: '[]', parts: [], length: 0 };
  const write = (sequence: number, salt: number): Buffer => {
    const target = Buffer.alloc(roomFor(packed));
    return target.subarray(0, writeFrame(target, packed, sequence, Buffer.alloc(SALT_BYTES, salt)));
  };
  const sequences = (...frames: Buffer[]): number[] =>
    [...readFrames(Buffer.concat(frames))].map(({ sequence }) => sequence);
  expect(sequences(write(5, 1), write(6, 1))).toEqual([5, 6]);
  expect(sequences(write(5, 1), write(6, 2))).toEqual([5]);
  expect(sequences(write(5, 1), write(7, 1))).toEqual([5]);
});

test('while the database takes nothing, deliveries are accepted and none is lost; who reads is told why he cannot', async () => {
  const dataDir = await tempDir();
  const told: string[] = [];
  const store = await openStore(dataDir, { ...silentLogger, error: (message) => void told.push(message) });
  const disk = new Sqlite(join(dataDir, 'svc.db'));
  onTestFinished(() => void disk.close());
  disk.exec("create trigger no_room before insert on delivery begin select raise(abort, 'no room'); end");
  const accepted = [delivery(), delivery({ body: Buffer.alloc(100_000, 1) })];
  for (const one of accepted)
    expect(await store.inbox.accept(one, { key: one.webhookId, expiresAt: inAWeek() }, '')).toBe('begun');
  await expect(store.inbox.find(accepted[0]!.webhookId)).rejects.toThrow('no room');
  expect(told).toHaveLength(1);
  expect(told[0]).toContain('tried again');
  disk.exec('drop trigger no_room');
  await expect
    .poll(
      () =>
        records(store).then(
          ({ size }) => size,
          () => 0,
        ),
      { timeout: 10_000 },
    )
    .toBe(2);
  expect((await store.inbox.find(accepted[1]!.webhookId))!.body).toEqual(Buffer.alloc(100_000, 1));
});

test('a database that takes nothing until the end keeps the journal for the next start', async () => {
  const dataDir = await tempDir();
  const store = await openStore(dataDir);
  const disk = new Sqlite(join(dataDir, 'svc.db'));
  disk.exec("create trigger no_room before insert on delivery begin select raise(abort, 'no room'); end");
  const one = delivery();
  await store.inbox.accept(one, undefined, '');
  await store.close();
  expect(readdirSync(journalOf(dataDir))).toHaveLength(1);
  disk.exec('drop trigger no_room');
  disk.close();
  expect((await records(await openStore(dataDir))).get(one.webhookId)).toBe('accepted');
});

test.runIf(process.platform === 'linux')(
  'a full disk refuses a delivery with STORE_ERROR and leaves no trace of it; with room again, all goes on',
  async () => {
    const dataDir = await tempDir();
    const store = await openStore(dataDir);
    const claim = { key: 'k', expiresAt: inAWeek() };
    await store.inbox.accept(delivery(), undefined, '');
    const giveRoom = fillDisk(join(journalOf(dataDir), '0.log'));
    for (const attempt of [1, 2])
      await expect(store.inbox.accept(delivery(), claim, ''), `${attempt}`).rejects.toMatchObject({
        code: 'STORE_ERROR',
        message: expect.stringContaining('no room left'),
      });
    expect(await store.inbox.seen('k', systemClock.now())).toBeUndefined();
    giveRoom();
    expect(await store.inbox.accept(delivery(), claim, '')).toBe('begun');
    expect((await records(store)).size).toBe(2);
  },
);

test('files that are full wait until they are applied, and are written over then', async () => {
  const dataDir = await tempDir();
  const segments = { segmentBytes: 20_000, mostSegments: 2 };
  const store = await openStore(dataDir, silentLogger, { segments });
  const accepted = Array.from({ length: 2000 }, (_, n) => delivery({ body: Buffer.alloc(n) }));
  let most = 0;
  await Promise.all(
    accepted.map(async (one) => {
      // Each in a turn of its own, or one frame would hold them all.
      await new Promise((resolve) => setTimeout(resolve, one.body!.byteLength / 4));
      expect(await store.inbox.accept(one, { key: one.webhookId, expiresAt: inAWeek() }, '')).toBe('begun');
      most = Math.max(most, readdirSync(journalOf(dataDir)).length);
    }),
  );
  expect(most).toBe(2);
  const found = await records(store);
  expect(accepted.filter(({ webhookId }) => !found.has(webhookId))).toEqual([]);
  for (const one of accepted.filter((_, n) => n % 100 === 0))
    expect((await store.inbox.find(one.webhookId))!.body).toEqual(one.body);
  await expect.poll(() => readdirSync(journalOf(dataDir)).length).toBe(1);
});

test('when there is no room in the journal and the database takes nothing, a delivery is refused', async () => {
  const dataDir = await tempDir();
  const segments = { segmentBytes: 1000, mostSegments: 1 };
  const store = await openStore(dataDir, silentLogger, { segments });
  const disk = new Sqlite(join(dataDir, 'svc.db'));
  onTestFinished(() => void disk.close());
  disk.exec("create trigger no_room before insert on delivery begin select raise(abort, 'no room'); end");
  const body = Buffer.alloc(1000);
  await store.inbox.accept(delivery({ body }), undefined, '');
  await expect(store.inbox.accept(delivery({ body }), undefined, '')).rejects.toThrow('no room');
  disk.exec('drop trigger no_room');
  await expect
    .poll(() => store.inbox.accept(delivery({ body }), undefined, '').catch(() => 'refused'), {
      timeout: 10_000,
    })
    .toBe('begun');
  expect((await records(store)).size).toBe(2);
});

test('what has ended is nothing to do, also before the database knows', async () => {
  const dataDir = await tempDir();
  const store = await openStore(dataDir);
  const [ended, open] = [delivery(), delivery()];
  for (const one of [ended, open]) await store.inbox.accept(one, undefined, '');
  // Both are in the database, where nothing changes any more.
  expect(await store.inbox.unfinished(2)).toHaveLength(2);
  const disk = new Sqlite(join(dataDir, 'svc.db'));
  onTestFinished(() => void disk.close());
  disk.exec("create trigger no_end before update on delivery begin select raise(abort, 'no end'); end");
  await store.inbox.finish(ended.webhookId, {
    status: 'succeeded',
    httpStatus: 202,
    steps: '',
    outcome: null,
    durationMs: 1,
  });
  expect((await store.inbox.unfinished(1)).map(({ webhookId }) => webhookId)).toEqual([open.webhookId]);
  disk.exec('drop trigger no_end');
});

test('a journal with a hole is applied up to it, and kept aside for whoever can make sense of the rest', async () => {
  const dataDir = await tempDir();
  const writer = startProgram('accept-deliveries', dataDir, 'a');
  await writer.printed(500);
  await writer.kill();
  const [name] = readdirSync(journalOf(dataDir)) as [string];
  const file = join(journalOf(dataDir), name);
  const frames = [...readFrames(await readFile(file))];
  // The second half becomes a file of its own, without its first frame.
  const bytes = await readFile(file);
  const middle = Math.floor(frames.length / 2);
  await writeFile(join(journalOf(dataDir), '77.log'), bytes.subarray(frames[middle]!.end));
  await writeFile(file, bytes.subarray(0, frames[middle - 1]!.end));

  const told: string[] = [];
  const store = await openStore(dataDir, { ...silentLogger, error: (message) => void told.push(message) });
  expect(told).toHaveLength(1);
  expect(told[0]).toContain('inbox-damaged');
  expect(readdirSync(join(dataDir, 'inbox-damaged')).sort()).toEqual(['77.log', name].sort());
  expect((await records(store)).size).toBeGreaterThan(0);
  expect(await store.inbox.accept(delivery(), undefined, '')).toBe('begun');
});

test('a step that only a newer version knows is a reason not to start, and the journal stays', async () => {
  const dataDir = await tempDir();
  await (await openStore(dataDir)).close();
  const packed = { units: JSON.stringify([[0, 'fromTheFuture', []]]), parts: [], length: 0 };
  const target = Buffer.alloc(roomFor(packed));
  const length = writeFrame(target, packed, 1, Buffer.alloc(SALT_BYTES, 1));
  await mkdir(journalOf(dataDir));
  await writeFile(join(journalOf(dataDir), '0.log'), target.subarray(0, length));
  await expect(openStore(dataDir)).rejects.toThrow(/"fromTheFuture".*newer version/);
  expect(readdirSync(journalOf(dataDir))).toEqual(['0.log']);
});
