import { createHmac } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { beforeAll, expect, test } from 'vitest';
import { type BackupManifest, DATA_PREFIX } from '../../src/cli/commands/backup/manifest.ts';
import { decodeHeader, encodeHeader } from '../../src/kit/files/tar/header.ts';
import { DATA_FILES } from '../../src/store/sqlite/data-files.ts';
import { tempDir } from '../support/daemon.ts';
import { sharedPlatform, type TestPlatform, testPlatform } from './platform.ts';

const SLOW = { timeout: 120_000 };
const SENDERS = 4;

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: 'inbox',
  version: '1.0.0',
  permissions: { platform: { state: true } },
  webhooks: ['sync', 'async'].map((event) => ({
    event,
    handler: 'hooks.js#handle',
    async: event === 'async',
    auth: { type: 'hmac', header: 'x-signature' },
    idempotencyKey: 'id',
    rateLimit: { requestsPerMinute: 1_000_000 },
  })),
};
const HANDLER = `export async function handle(ctx, { id }) { await ctx.state.set('seen:' + id, true); return null; }`;

async function addInbox({ folder }: TestPlatform): Promise<void> {
  const root = join(folder, 'plugins', 'inbox');
  await mkdir(root, { recursive: true });
  await writeFile(join(root, 'svc.plugin.json'), JSON.stringify(MANIFEST));
  await writeFile(join(root, 'package.json'), '{"type":"module"}');
  await writeFile(join(root, 'hooks.js'), HANDLER);
}

interface Hook {
  url: string;
  secret: string;
}

async function deliver(gateway: string, event: string, { secret }: Hook, id: string) {
  const body = JSON.stringify({ id });
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  const response = await fetch(`${gateway}/webhooks/inbox/${event}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-svc-namespace': 'default', 'x-signature': signature },
    body,
  });
  return { status: response.status, body: (await response.json()) as { status?: string } };
}

/** Delivers without pause until stopped; `acknowledged` grows with every 2xx. */
function senders(gateway: string, hooks: Record<string, Hook>) {
  const acknowledged: Array<{ event: string; id: string }> = [];
  let stopped = false;
  const run = async (sender: number): Promise<void> => {
    for (let n = 0; !stopped; n++) {
      const event = n % 2 === 0 ? 'sync' : 'async';
      const id = `${sender}-${n}`;
      const { status } = await deliver(gateway, event, hooks[event]!, id);
      if (status === 200 || status === 202) acknowledged.push({ event, id });
    }
  };
  const done = Promise.all(Array.from({ length: SENDERS }, (_, sender) => run(sender)));
  return {
    acknowledged,
    async stop() {
      stopped = true;
      await done;
    },
  };
}

test(
  'a backup under load, restored elsewhere, has all that was acknowledged before it began',
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

    const target = await testPlatform();
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

test('every database that a running platform keeps is one that backup and doctor know', SLOW, async () => {
  const { svc, dataDir } = await testPlatform();
  await svc('up', '-d');
  const names = async () => (await readdir(dataDir)).filter((name) => name.endsWith('.db')).toSorted();
  // Made by the first vector that a plugin keeps: see below.
  const known = DATA_FILES.map(({ name }) => name).filter((name) => name !== 'vectors.db');
  // The last of them is made with the first log records.
  await expect.poll(names).toEqual(known.toSorted());
});

/** A platform that ran once; tests may put its data aside for a backup of the same. */
let ran: Awaited<ReturnType<typeof sharedPlatform>>;
beforeAll(async () => {
  ran = await sharedPlatform();
  await ran.svc('up', '-d');
  await ran.svc('down');
  return ran.end;
}, 60_000);

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

test('restore keeps the former data aside, refuses a running platform, and asks first', SLOW, async () => {
  const { svc, dataDir, archive, folder } = await backedUp();
  await writeFile(join(dataDir, 'mark'), 'of the data that is replaced');
  const asked = await svc('restore', archive);
  expect([asked.code, asked.json.error.details.hint]).toEqual([3, 'Use --yes to confirm.']);

  const { json } = await svc('restore', archive, '--yes');
  expect(await readFile(join(json.result.former, 'mark'), 'utf8')).toContain('replaced');
  expect([existsSync(join(dataDir, 'mark')), (await stat(dataDir)).mode & 0o777]).toEqual([false, 0o700]);
  expect((await stat(join(dataDir, 'keys.json'))).mode & 0o777).toBe(0o600);
  expect((await readdir(folder)).filter((name) => name.includes('restoring'))).toEqual([]);

  await svc('up', '-d');
  const running = await svc('restore', archive, '--yes');
  expect([running.code, running.json.error.code, running.json.error.details.hint]).toEqual([
    1,
    'CONFLICT',
    'svc down',
  ]);
  await svc('down');
});

test(
  'without keys a backup takes those that are there, and says when they are the wrong ones',
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

/** The archive with its tar changed, packed again. */
async function tampered(archive: string, change: (tar: Buffer) => Buffer): Promise<string> {
  const file = join(await tempDir(), 'tampered.tar.gz');
  await writeFile(file, gzipSync(change(gunzipSync(await readFile(archive)))));
  return file;
}

/** Where an entry's header stands, by a part of its name. */
function headerAt(tar: Buffer, part: string): number {
  for (let at = 0; at < tar.length; ) {
    const { name, size } = decodeHeader(tar.subarray(at, at + 512));
    if (name.includes(part)) return at;
    at += 512 + Math.ceil(size / 512) * 512;
  }
  throw new Error(`There is no ${part}.`);
}

function editManifest(tar: Buffer, edit: (manifest: BackupManifest) => BackupManifest): Buffer {
  const { size } = decodeHeader(tar.subarray(0, 512));
  const manifest = JSON.parse(tar.subarray(512, 512 + size).toString()) as BackupManifest;
  const text = Buffer.from(JSON.stringify(edit(manifest)));
  const header = encodeHeader({ name: 'manifest.json', type: '0', size: text.length, mode: 0o600 });
  const padding = Buffer.alloc((512 - (text.length % 512)) % 512);
  return Buffer.concat([header, text, padding, tar.subarray(512 + Math.ceil(size / 512) * 512)]);
}

function replaceHeader(tar: Buffer, part: string, change: Partial<ReturnType<typeof decodeHeader>>): Buffer {
  const copy = Buffer.from(tar);
  const at = headerAt(tar, part);
  encodeHeader({ ...decodeHeader(tar.subarray(at, at + 512)), ...change }).copy(copy, at);
  return copy;
}

test('a damaged, foreign, newer or hostile archive is refused, and nothing is touched', SLOW, async () => {
  const { svc, archive, dataDir, folder } = await backedUp();
  const entries = async () =>
    (await readdir(join(folder, '..'), { recursive: true }))
      .filter((name) => !name.includes('/run/'))
      .toSorted();
  const before = await entries();
  const cases: Array<[string, RegExp, (tar: Buffer) => Buffer]> = [
    [
      'a flipped byte',
      /digest differs|damaged/,
      (tar) => {
        const copy = Buffer.from(tar);
        const at = headerAt(tar, 'svc.db') + 512 + 5000;
        copy[at] = (copy[at] ?? 0) ^ 1;
        return copy;
      },
    ],
    ['cut short', /ends in the middle|is missing/, (tar) => tar.subarray(0, headerAt(tar, 'svc.db') + 2000)],
    [
      'a path that leads out',
      /points outside/,
      (tar) =>
        editManifest(tar, (manifest) => ({
          ...manifest,
          files: manifest.files.map((file) => ({ ...file, name: `../../${file.name}` })),
        })),
    ],
    [
      'an entry beside the manifest',
      /missing in the manifest/,
      (tar) => replaceHeader(tar, 'credentials.json', { name: `${DATA_PREFIX}../../escaped` }),
    ],
    ['a symbolic link', /symbolic link/, (tar) => replaceHeader(tar, 'credentials.json', { type: '2' })],
    ['a hard link', /hard link/, (tar) => replaceHeader(tar, 'credentials.json', { type: '1' })],
    [
      'a newer schema',
      /newer than this version supports \(schema 99/,
      (tar) => editManifest(tar, (manifest) => ({ ...manifest, schemas: { 'svc.db': 99 } })),
    ],
    [
      'a newer format',
      /newer format/,
      (tar) => editManifest(tar, (manifest) => ({ ...manifest, format: 9 })),
    ],
    [
      'an archive of another program',
      /not a backup of svc/,
      (tar) => tar.subarray(headerAt(tar, 'keys.json')),
    ],
  ];
  for (const [name, says, change] of cases) {
    const { code, json } = await svc('restore', await tampered(archive, change), '--yes');
    expect([name, code, json.error.message]).toEqual([name, 1, expect.stringMatching(says)]);
  }
  const notGzip = await svc('restore', join(dataDir, 'keys.json'), '--yes');
  expect(notGzip.json.error.message).toMatch(/^The archive is refused: it cannot be read/);
  expect((await svc('restore', join(folder, 'absent.tar.gz'), '--yes')).json.error.code).toBe('NOT_FOUND');
  expect(await entries()).toEqual(before);
});

test('backup replaces nothing unasked, and not its own source', SLOW, async () => {
  const { svc, archive, dataDir } = await backedUp();
  expect((await svc('backup', archive)).json.error.code).toBe('CONFLICT');
  expect((await svc('backup', archive, '--force')).code).toBe(0);
  expect((await svc('backup', join(dataDir, 'backup.tar.gz'))).json.error.message).toContain(
    'inside the data folder',
  );
  const fresh = await testPlatform();
  expect((await fresh.svc('backup', '../x.tar.gz')).json.error.code).toBe('NOT_FOUND');
});
