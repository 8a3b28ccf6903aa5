import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { parseSource } from '../../../src/daemons/marketplace/sources/parse-source.ts';
import { unpackTarball } from '../../../src/daemons/marketplace/sources/tar.ts';
import type { PlatformError } from '../../../src/kit/errors/errors.ts';
import { tempDir } from '../../support/daemon.ts';
import { pluginArchive } from './support.ts';

interface Entry {
  name: string;
  content?: string;
  /** `0` file, `1` hard link, `2` symbolic link, `3` device, `5` folder, `x` and `L` long names. */
  type?: string;
  link?: string;
  mode?: number;
  /** A size that is not that of the content. */
  size?: number;
}

/** A tar archive byte by byte, such as no honest tool writes. */
function tarOf(entries: Entry[]): Buffer {
  const blocks = entries.flatMap(({ name, content = '', type = '0', link = '', mode = 0o644, size }) => {
    const body = Buffer.from(content);
    const header = Buffer.alloc(512);
    const octal = (value: number, length: number) => `${value.toString(8).padStart(length - 1, '0')}\0`;
    header.write(name, 0, 100);
    header.write(octal(mode, 8), 100);
    header.write(octal(size ?? body.length, 12), 124);
    header.fill(' ', 148, 156);
    header.write(type, 156);
    header.write(link, 157, 100);
    header.write('ustar\0', 257);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    return [header, body, Buffer.alloc((512 - (body.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

async function unpack(archive: Buffer): Promise<string> {
  const folder = await tempDir();
  await writeFile(join(folder, 'a.tgz'), archive);
  const target = join(folder, 'out');
  await unpackTarball(join(folder, 'a.tgz'), target, new Set(['.npmrc']));
  return target;
}

const unpackEntries = (entries: Entry[]) => unpack(gzipSync(tarOf(entries)));

test('an archive of a real tool is unpacked, programs stay programs, npm settings stay out', async () => {
  const folder = await tempDir();
  const archive = await pluginArchive({ 'a.js': 'a', [`${'deep/'.repeat(30)}b.js`]: 'b', '.npmrc': 'x' });
  await unpackTarball(archive, folder, new Set(['.npmrc']));
  expect((await readdir(folder)).sort()).toEqual(['a.js', 'deep']);
  expect(await readFile(join(folder, 'deep/'.repeat(30), 'b.js'), 'utf8')).toBe('b');
  const out = await unpackEntries([
    { name: 'package/', type: '5' },
    { name: 'package/bin.sh', content: '#!', mode: 0o755 },
    { name: 'x', type: 'x', content: '31 path=package/long-by-pax.js\n' },
    { name: 'package/short', content: 'pax' },
    { name: 'x', type: 'L', content: 'package/long-by-gnu.js\0' },
    { name: 'package/short', content: 'gnu' },
  ]);
  expect((await readdir(out)).sort()).toEqual(['bin.sh', 'long-by-gnu.js', 'long-by-pax.js']);
  expect((await stat(join(out, 'bin.sh'))).mode & 0o111).not.toBe(0);
});

test.each<[name: string, entries: Entry[], message: RegExp]>([
  ['a path upwards', [{ name: 'package/../../evil.js', content: 'x' }], /is a path outside of the package/],
  ['an absolute path', [{ name: '/etc/cron.d/evil', content: 'x' }], /is a path outside of the package/],
  [
    'a path of another system',
    [{ name: 'package\\..\\evil', content: 'x' }],
    /is a path outside of the package/,
  ],
  ['a drive', [{ name: 'C:/evil', content: 'x' }], /is a path outside of the package/],
  [
    'headers without end',
    Array.from({ length: 200 }, () => ({ name: 'x', type: 'x' })),
    /more than 65536 bytes of headers/,
  ],
  [
    'a path upwards in an extended header',
    [
      { name: 'x', type: 'x', content: '27 path=package/../../evil\n' },
      { name: 'package/innocent', content: 'x' },
    ],
    /is a path outside of the package/,
  ],
  ['a symbolic link', [{ name: 'package/l', type: '2', link: '/etc/passwd' }], /is a symbolic link/],
  ['a hard link', [{ name: 'package/l', type: '1', link: '/etc/passwd' }], /is a hard link/],
  ['a device', [{ name: 'package/d', type: '3' }], /is a device/],
  [
    'one name twice',
    [
      { name: 'package/a.js', content: 'one' },
      { name: 'package/a.js', content: 'two' },
    ],
    /cannot be read: EEXIST/,
  ],
  ['a file that claims to be huge', [{ name: 'package/a', size: 2 ** 31 - 1 }], /unpacks to more than/],
  ['a file that ends too soon', [{ name: 'package/a', content: 'x', size: 5000 }], /ends in the middle/],
  [
    'a huge header',
    [{ name: 'x', type: 'x', content: 'x'.repeat(10 ** 6) }, { name: 'package/a' }],
    /more than 65536 bytes of headers/,
  ],
  ['a long name', [{ name: 'x', type: 'L', content: `p/${'a'.repeat(5000)}` }, { name: 'p/x' }], /too long/],
])('%s is refused', async (_name, entries, message) => {
  await expect(unpackEntries(entries)).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
    message: expect.stringMatching(message),
  });
});

test('a file that is no archive is refused', async () => {
  await expect(unpack(Buffer.from('hello'))).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
  await expect(unpack(gzipSync('hello '.repeat(500)))).rejects.toMatchObject({
    message: expect.stringMatching(/damaged or not a tar archive|malformed/),
  });
  const cut = gzipSync(tarOf([{ name: 'package/a', content: 'x'.repeat(9000) }]));
  await expect(unpack(cut.subarray(0, 40))).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
});

test('an archive bomb of many files is refused at its limit', async () => {
  const one = tarOf([{ name: 'package/f/', type: '5' }]).subarray(0, 512);
  const many = Buffer.concat(Array.from({ length: 50_001 }, () => one));
  await expect(unpack(gzipSync(many))).rejects.toMatchObject({
    message: expect.stringMatching(/more than 50000 files/),
  });
});

test.each([
  ['@acme/orders', { kind: 'npm' }],
  ['@acme/orders@^1.2.0 || >=3', { kind: 'npm', spec: '@acme/orders@^1.2.0 || >=3' }],
  ['orders@latest', { kind: 'npm' }],
  ['https://example.com/a.tgz', { kind: 'npm' }],
  ['github:acme/orders#v1', { kind: 'git', url: 'https://github.com/acme/orders.git', ref: 'v1' }],
  ['git+https://example.com/a.git', { kind: 'git', url: 'https://example.com/a.git', ref: null }],
  ['https://example.com/a.git#main', { kind: 'git', ref: 'main' }],
  ['git+ssh://git@example.com/a.git', { kind: 'git', url: 'ssh://git@example.com/a.git' }],
])('%s is understood', (text, source) => {
  expect(parseSource(text, '/nowhere')).toMatchObject({ text, ...source });
});

test.each([
  '--registry=http://evil.example',
  '-g',
  'orders\n--script-shell=sh',
  'git+https://example.com/a.git#--upload-pack=evil',
  'ext::sh -c evil',
  'git+ext://evil',
  'orders@file:/etc',
  'orders@npm:evil',
  'orders@git+https://evil.example/x.git',
  './absent',
  '/absent.tgz',
  'Some Words',
  'http://example.com/a.tgz',
])('%j is no source', (text) => {
  expect(() => parseSource(text, '/nowhere')).toThrow(/cannot be installed/);
});

test.each([
  ['git+https://user:s3cret@example.com/a.git', 'https://example.com/a.git'],
  ['https://s3cret@example.com/a.git#main', 'https://example.com/a.git'],
  ['https://user:s3cret@example.com/a.tgz', 'https://example.com/a.tgz'],
  ['git+ssh://git:s3cret@example.com/a.git', 'ssh://example.com/a.git'],
])(
  '%s is refused, since installed sources are listed and logged; its secret is not repeated',
  (text, shown) => {
    let error: PlatformError | undefined;
    try {
      parseSource(text, '/nowhere');
    } catch (thrown) {
      error = thrown as PlatformError;
    }
    expect(error).toMatchObject({ code: 'VALIDATION_ERROR', details: { source: shown } });
    expect(error?.message).toContain('contains credentials');
    expect(JSON.stringify([error?.message, error?.details])).not.toContain('s3cret');
  },
);

test('an archive deleted while it is read fails only its own installation', async () => {
  await expect(unpackTarball(join(await tempDir(), 'gone.tgz'), '/nowhere', new Set())).rejects.toMatchObject(
    {
      code: 'VALIDATION_ERROR',
      message: expect.stringContaining('ENOENT'),
    },
  );
});
