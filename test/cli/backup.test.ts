import { existsSync } from 'node:fs';
import { cp, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gunzipSync, gzipSync } from 'node:zlib';
import { extract, type Header, pack } from 'tar-stream';
import { beforeAll, expect, test, vi } from 'vitest';
import { type BackupManifest, DATA_PREFIX } from '../../src/cli/commands/backup/manifest.ts';
import { DATA_FILES } from '../../src/store/sqlite/data-files.ts';
import { tempDir } from '../support/daemon.ts';
import { addInbox, deliver, type Hook, senders } from './inbox-load.ts';
import { sharedPlatform, standInVariables, testPlatform, withStandIns } from './platform.ts';

const SLOW = { timeout: 120_000 };

test(
  'a backup under load, restored in another folder, has all writes acknowledged before it began',
  SLOW,
  async () => {
    const source = await testPlatform();
    await addInbox(source);
    expect((await source.svc('up', '-d')).code).toBe(0);
    const gateway = (await source.service('gateway')).url;
    const provision = async (event: string): Promise<Hook> =>
      (await source.svc('webhooks', 'provision', 'inbox', event)).json.result;
    const hooks = { sync: await provision('sync'), async: await provision('async') };

    const load = senders(gateway, hooks);
    await expect.poll(() => load.acknowledged.length, { timeout: 30_000 }).toBeGreaterThan(100);
    const before = [...load.acknowledged];
    const archive = join(source.folder, '..', 'backup.tar.gz');
    const made = await source.svc('backup', archive);
    expect(made.json).toMatchObject({ ok: true, result: { withKeys: true, skipped: [] } });
    expect(made.json.result.databases).toEqual(['svc.db', 'workflow.db', 'state.db', 'telemetry.db']);
    expect((await stat(archive)).mode & 0o777).toBe(0o600);
    // The load went on: what is checked below is not what merely stood still.
    expect(load.acknowledged.length).toBeGreaterThan(before.length);
    await load.stop();
    await source.svc('down');
    expect((await readdir(join(source.dataDir, 'run'))).filter((name) => name.startsWith('backup-'))).toEqual(
      [],
    );

    const target = await testPlatform(...withStandIns({ real: ['state', 'marketplace', 'gateway'] }));
    await addInbox(target);
    const restored = await target.svc('restore', archive);
    expect(restored.json).toMatchObject({ ok: true, result: { former: null, secretsOpen: true } });
    expect((await target.svc('up', '-d')).code).toBe(0);
    const there = (await target.service('gateway')).url;
    const again = await Promise.all(
      before.map(({ event, id }) => deliver(there, event, hooks[event as 'sync'], id)),
    );
    expect(again.filter(({ body }) => body.status !== 'duplicate')).toEqual([]);
    // A new one is authenticated with the secret that was sealed there, and handled.
    expect((await deliver(there, 'sync', hooks.sync, 'new')).body.status).toBe('ok');
  },
);

/** A platform that ran once; tests may put its data aside for a backup of the same. */
let ran: Awaited<ReturnType<typeof sharedPlatform>>;
/** Its databases while it ran. */
let databasesWhileRunning: string[];
beforeAll(async () => {
  ran = await sharedPlatform();
  await ran.svc('up', '-d');
  const names = async () => (await readdir(ran.dataDir)).filter((name) => name.endsWith('.db')).toSorted();
  // Created with the first log records, as the last of them.
  await vi.waitFor(async () => expect(await names()).toContain('telemetry.db'), { timeout: 30_000 });
  databasesWhileRunning = await names();
  await ran.svc('down');
  return ran.end;
}, 60_000);

test('backup and doctor cover every database of a running platform', () => {
  // Created by the first vector that a plugin keeps: see below.
  const known = DATA_FILES.map(({ name }) => name).filter((name) => name !== 'vectors.db');
  expect(databasesWhileRunning).toEqual(known.toSorted());
});

/** That platform, and a backup of it. */
async function backedUp(...flags: string[]) {
  const archive = join(await tempDir(), 'backup.tar.gz');
  const made = await ran.svc('backup', archive, ...flags);
  return { ...ran, archive, made };
}

test("a backup brings plugins' objects and vectors back", SLOW, async () => {
  const { folder, dataDir, svc, service } = await testPlatform();
  const project = join(import.meta.dirname, '../fixtures/projects/adapters/plugins');
  await cp(project, join(folder, 'plugins'), { recursive: true });
  const call = async (...steps: unknown[]) => {
    const { url } = await service('rest');
    const response = await fetch(`${url}/api/v1/plugins/library/call`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ steps }),
    });
    return response.json();
  };
  await svc('up', '-d');
  const vector = [{ id: 'x', vector: [1, 0] }];
  expect(await call(['storage', 'write', 'kept', 'text'], ['vectorStore', 'upsert', vector])).toEqual([
    null,
    { written: 1 },
  ]);
  const databases = (await readdir(dataDir)).filter((name) => name.endsWith('.db'));
  expect(databases.toSorted()).toEqual(DATA_FILES.map(({ name }) => name).toSorted());
  await svc('backup', 'all.tar.gz');
  await call(['storage', 'write', 'kept', 'later'], ['vectorStore', 'delete', 'x']);
  await svc('down');
  expect((await svc('restore', 'all.tar.gz', '--yes')).code).toBe(0);
  await svc('up', '-d');
  expect(await call(['storage', 'read', 'kept'], ['vectorStore', 'search', [1, 0]])).toEqual([
    { bytes: [...Buffer.from('text')] },
    [expect.objectContaining({ id: 'x' })],
  ]);
});

test(
  'restore keeps the previous data, refuses a running platform, and asks for confirmation',
  SLOW,
  async () => {
    const { svc, dataDir, archive, folder } = await backedUp();
    await writeFile(join(dataDir, 'mark'), 'of the data that is replaced');
    const asked = await svc('restore', archive);
    expect([asked.code, asked.json.error.details.hint]).toEqual([3, 'Use --yes to confirm.']);

    const { json } = await svc('restore', archive, '--yes');
    expect(await readFile(join(json.result.former, 'mark'), 'utf8')).toContain('replaced');
    expect([existsSync(join(dataDir, 'mark')), (await stat(dataDir)).mode & 0o777]).toEqual([false, 0o700]);
    expect((await stat(join(dataDir, 'keys.json'))).mode & 0o777).toBe(0o600);
    expect((await readdir(folder)).filter((name) => name.includes('restoring'))).toEqual([]);

    await writeFile(join(folder, '.env'), standInVariables().join('\n'), { mode: 0o600 });
    await svc('up', '-d');
    const running = await svc('restore', archive, '--yes');
    expect([running.code, running.json.error.code, running.json.error.details.hint]).toEqual([
      1,
      'CONFLICT',
      'svc down',
    ]);
    await svc('down');
  },
);

test(
  'a backup without keys is restored with the existing keys, and a mismatch is reported',
  SLOW,
  async () => {
    const { svc, archive, made, dataDir } = await backedUp('--without-keys', '--without-telemetry');
    expect(made.json.result).toMatchObject({
      withKeys: false,
      databases: ['svc.db', 'workflow.db', 'state.db'],
    });
    expect(made.stderr).toContain('does not contain keys.json');
    const keys = await readFile(join(dataDir, 'keys.json'), 'utf8');
    for (const secret of Object.values(JSON.parse(keys) as Record<string, string>))
      expect(gunzipSync(await readFile(archive)).includes(secret)).toBe(false);

    const here = await svc('restore', archive, '--yes');
    expect(here.json.result.secretsOpen).toBe(true);
    expect(await readFile(join(dataDir, 'keys.json'), 'utf8')).toBe(keys);

    const elsewhere = await testPlatform();
    const { json, stderr } = await elsewhere.svc('restore', archive);
    expect(json.result.secretsOpen).toBe(false);
    expect(stderr).toMatch(/encrypted with master key [\w-]{8}, but the current one is none/);
  },
);

interface Entry {
  header: Header;
  body: Buffer;
}

async function entriesOf(archive: string): Promise<Entry[]> {
  const tar = extract();
  tar.end(gunzipSync(await readFile(archive)));
  const entries: Entry[] = [];
  for await (const entry of tar)
    entries.push({ header: entry.header, body: Buffer.concat(await Readable.from(entry).toArray()) });
  return entries;
}

/** The archive with its entries changed and, last of all, its bytes. */
async function tampered(
  archive: string,
  change: (entries: Entry[]) => Entry[],
  cut: (tar: Buffer) => Buffer = (tar) => tar,
): Promise<string> {
  const tar = pack();
  for (const { header, body } of change(await entriesOf(archive)))
    tar.entry({ ...header, size: body.length }, body);
  tar.finalize();
  const file = join(await tempDir(), 'tampered.tar.gz');
  await writeFile(file, gzipSync(cut(Buffer.concat(await Readable.from(tar).toArray()))));
  return file;
}

/** Changes the entry whose name holds `part`. */
function edit(part: string, change: (entry: Entry) => Partial<Entry>): (entries: Entry[]) => Entry[] {
  return (entries) => {
    expect(entries.some(({ header }) => header.name.includes(part))).toBe(true);
    return entries.map((entry) =>
      entry.header.name.includes(part) ? { ...entry, ...change(entry) } : entry,
    );
  };
}

const editHeader = (part: string, change: Partial<Header>) =>
  edit(part, ({ header }) => ({ header: { ...header, ...change } }));

const editManifest = (change: (manifest: BackupManifest) => BackupManifest) =>
  edit('manifest.json', ({ body }) => ({
    body: Buffer.from(JSON.stringify(change(JSON.parse(body.toString()) as BackupManifest))),
  }));

const linked = (type: 'link' | 'symlink') =>
  edit('credentials.json', ({ header }) => ({
    header: { ...header, type, linkname: '/etc/passwd' },
    body: Buffer.alloc(0),
  }));

test('a damaged, foreign, newer or hostile archive is refused without changes', SLOW, async () => {
  const { svc, archive, dataDir, folder } = await backedUp();
  const entries = async () =>
    (await readdir(join(folder, '..'), { recursive: true }))
      .filter((name) => !name.includes('/run/'))
      .toSorted();
  const before = await entries();
  const cases: Array<[string, RegExp, (entries: Entry[]) => Entry[], ((tar: Buffer) => Buffer)?]> = [
    [
      'a flipped byte',
      /digest differs|damaged/,
      edit('svc.db', ({ body }) => {
        const copy = Buffer.from(body);
        copy[5000] = (copy[5000] ?? 0) ^ 1;
        return { body: copy };
      }),
    ],
    ['cut short', /ends in the middle/, (entries) => entries, (tar) => tar.subarray(0, -5000)],
    ['without its last file', /is missing/, (entries) => entries.slice(0, -1)],
    [
      'a path that leads out',
      /points outside/,
      editManifest((manifest) => ({
        ...manifest,
        files: manifest.files.map((file) => ({ ...file, name: `../../${file.name}` })),
      })),
    ],
    [
      'an entry beside the manifest',
      /missing in the manifest/,
      editHeader('credentials.json', { name: `${DATA_PREFIX}../../escaped` }),
    ],
    ['a symbolic link', /symbolic link/, linked('symlink')],
    ['a hard link', /hard link/, linked('link')],
    [
      'a newer schema',
      /newer than this version supports \(schema 99/,
      editManifest((manifest) => ({ ...manifest, schemas: { 'svc.db': 99 } })),
    ],
    ['a newer format', /newer format/, editManifest((manifest) => ({ ...manifest, format: 9 }))],
    ['an archive of another program', /not a backup of svc/, (entries) => entries.slice(1)],
  ];
  for (const [name, says, change, cut] of cases) {
    const { code, json } = await svc('restore', await tampered(archive, change, cut), '--yes');
    expect([name, code, json.error.message]).toEqual([name, 1, expect.stringMatching(says)]);
  }
  const notGzip = await svc('restore', join(dataDir, 'keys.json'), '--yes');
  expect(notGzip.json.error.message).toMatch(/^The archive is refused: it cannot be read/);
  expect((await svc('restore', join(folder, 'absent.tar.gz'), '--yes')).json.error.code).toBe('NOT_FOUND');
  expect(await entries()).toEqual(before);
});

test('backup overwrites no file without confirmation, and never its own source', SLOW, async () => {
  const { svc, archive, dataDir } = await backedUp();
  expect((await svc('backup', archive)).json.error.code).toBe('CONFLICT');
  expect((await svc('backup', archive, '--force')).code).toBe(0);
  expect((await svc('backup', join(dataDir, 'backup.tar.gz'))).json.error.message).toContain(
    'inside the data folder',
  );
  const fresh = await testPlatform();
  expect((await fresh.svc('backup', '../x.tar.gz')).json.error.code).toBe('NOT_FOUND');
});
