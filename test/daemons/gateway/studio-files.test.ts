import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { StudioFiles } from '../../../src/daemons/gateway/domain/studio-files.ts';
import { tempDir } from '../../support/daemon.ts';

const PAGE = '<!doctype html><title>studio</title>';
const SCRIPT = 'console.log("studio");'.repeat(50);

async function textsOf(files: StudioFiles): Promise<Record<string, string>> {
  return Object.fromEntries([...(await files.read())].map(([name, { plain }]) => [name, `${plain}`]));
}

test('are read again after a damaged file has been repaired', async () => {
  const folder = await tempDir();
  const script = join(folder, 'first.js.br');
  const compressed = brotliCompressSync(SCRIPT);
  await writeFile(join(folder, 'index.html'), PAGE);
  await writeFile(script, compressed.subarray(0, -8));
  const files = new StudioFiles(folder);
  const both = await Promise.allSettled([files.read(), files.read()]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await writeFile(script, compressed);
  expect(await textsOf(files)).toEqual({ 'index.html': PAGE, 'first.js': SCRIPT });
  expect((await files.read()).get('first.js')!.brotli).toEqual(compressed);
});

test('are found once a missing build is there, and then stay those of that build', async () => {
  const parent = await tempDir();
  const folder = join(parent, 'studio');
  const files = new StudioFiles(folder);
  expect(await textsOf(files)).toEqual({});
  await mkdir(folder);
  await writeFile(join(folder, 'index.html'), PAGE);
  expect(await textsOf(files)).toEqual({ 'index.html': PAGE });
  await rename(folder, join(parent, 'old'));
  await rm(join(parent, 'old'), { recursive: true });
  expect(await textsOf(files)).toEqual({ 'index.html': PAGE });
});
