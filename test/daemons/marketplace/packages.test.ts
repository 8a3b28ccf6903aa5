import { randomBytes } from 'node:crypto';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { AdaptersConfig, type S3StorageConfig } from '../../../src/contracts/index.ts';
import { Packages } from '../../../src/daemons/plugin-runtime/shared/packages.ts';
import { integrityOf } from '../../../src/plugins/index.ts';
import { s3Objects } from '../../../src/store/s3/objects.ts';
import { tempDir } from '../../support/daemon.ts';
import { S3_CREDENTIALS, startS3Server } from '../../support/s3-server.ts';

const PART_BYTES = 10_000;

async function bucket() {
  const { endpoint, bucket: name, objects } = await startS3Server();
  const variable = (of: string): string => ['$', `{${of}}`].join('');
  const storage = {
    ...{ type: 's3', bucket: name, endpoint, pathStyle: true, maxObjectBytes: PART_BYTES },
    ...{ accessKeyId: variable('KEY_ID'), secretAccessKey: variable('KEY') },
  };
  const config = AdaptersConfig.parse({ storage }).storage as S3StorageConfig;
  const env = { KEY_ID: S3_CREDENTIALS.accessKeyId, KEY: S3_CREDENTIALS.secretAccessKey };
  return { objects, store: await s3Objects(config, env) };
}

/** A folder with a program, hidden files and more bytes than fit into one part. */
async function folderOf(bytes: number) {
  const folder = await tempDir();
  await mkdir(join(folder, 'node_modules/.bin'), { recursive: true });
  await writeFile(join(folder, '.npmrc'), 'x=1');
  await writeFile(join(folder, 'node_modules/.bin/tool'), '#!/bin/sh');
  await chmod(join(folder, 'node_modules/.bin/tool'), 0o755);
  await writeFile(join(folder, 'empty'), '');
  await writeFile(join(folder, 'large'), randomBytes(bytes));
  return { folder, integrity: await integrityOf(folder) };
}

test('a package larger than the objects of a bucket comes back with all files', async () => {
  const { store, objects } = await bucket();
  const packages = new Packages([store], PART_BYTES);
  const { folder, integrity } = await folderOf(35_000);
  await packages.keep(folder, integrity);
  expect(objects.size).toBe(5);
  const copy = await tempDir();
  await packages.unpack(integrity, copy);
  expect(await integrityOf(copy)).toBe(integrity);
});

test('a changed part, a changed index and a missing package are refused', async () => {
  const { store, objects } = await bucket();
  const packages = new Packages([store], PART_BYTES);
  const [first, second] = [await folderOf(100), await folderOf(100)];
  await packages.keep(first.folder, first.integrity);
  await packages.keep(second.folder, second.integrity);
  const indexes = [...objects].filter(([key]) => key.includes('/index/'));
  const [one, other] = indexes.map(([, kept]) => kept.data);
  indexes[0]![1].data = other!;
  indexes[1]![1].data = one!;
  const unpack = async (integrity: string) => packages.unpack(integrity, await tempDir());
  await expect(unpack(first.integrity)).rejects.toMatchObject({ code: 'INTEGRITY_MISMATCH' });
  indexes[0]![1].data = one!;
  indexes[1]![1].data = other!;
  await unpack(first.integrity);
  for (const [key, kept] of objects) if (key.includes('/part/')) kept.data = Buffer.from('changed');
  await expect(unpack(first.integrity)).rejects.toMatchObject({ code: 'INTEGRITY_MISMATCH' });
  objects.clear();
  await expect(unpack(first.integrity)).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

test('only unused packages are deleted, and packages of an earlier store are still found', async () => {
  const [earlier, current] = [await bucket(), await bucket()];
  const [used, unused] = [await folderOf(100), await folderOf(200)];
  await new Packages([earlier.store]).keep(used.folder, used.integrity);
  const packages = new Packages([current.store, earlier.store]);
  await packages.keep(unused.folder, unused.integrity);
  await packages.prune(new Set([used.integrity]));
  expect([current.objects.size, earlier.objects.size]).toEqual([0, 2]);
  await packages.unpack(used.integrity, await tempDir());
});
