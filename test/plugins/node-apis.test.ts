import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { tempDir } from '../support/daemon.ts';
import { SANDBOXES, startBackend } from './support.ts';

type Outcomes = Record<string, { refused?: string; got?: unknown }>;

/** The ways that got something, which must be none. */
const gotten = (outcomes: Outcomes): string[] =>
  Object.entries(outcomes).flatMap(([name, { refused }]) => (refused === undefined ? [name] : []));

describe.each(SANDBOXES)('Node\'s own modules under the sandbox "%s"', (sandbox) => {
  test('no way to node:v8 lets a plugin write into a file of the project by V8 flags', async () => {
    const { call, dataDir } = await startBackend({ sandbox });
    const file = join(dataDir, '.env');
    await writeFile(file, 'A=a\n');
    const line = `GATEWAY_JWT_SECRET=${'x'.repeat(32)}`;
    const outcomes = (await call('node-apis.js#writesByFlags', { input: { file, line } })) as Outcomes;
    expect(await readFile(file, 'utf8')).toBe('A=a\n');
    expect(Object.keys(outcomes).length).toBe(11);
    expect(gotten(outcomes)).toEqual([]);
  });

  test('nothing writes files, reads memory, or starts code outside of the guards', async () => {
    const { call } = await startBackend({ sandbox });
    const folder = await tempDir();
    await writeFile(join(folder, 'map.json'), '{"version":3,"sources":["secret"],"mappings":""}');
    const outcomes = (await call('node-apis.js#reachesOut', { input: { folder } })) as Outcomes;
    expect(Object.keys(outcomes).length).toBeGreaterThan(30);
    expect(gotten(outcomes)).toEqual([]);
    expect(await readdir(folder)).toEqual(['map.json']);
  });

  test('a plugin that may write to a folder makes nothing else write there', async () => {
    const { call } = await startBackend({ sandbox });
    const folder = await tempDir();
    const permissions = { fs: { read: [folder], write: [folder] } };
    const outcomes = (await call('node-apis.js#reachesOut', { input: { folder }, permissions })) as Outcomes;
    // Its own folder may be its working directory, and may hold what node:fs writes there.
    const own = ['chdir', 'sourceMap', 'replHistory'];
    expect(gotten(outcomes).filter((name) => !own.includes(name))).toEqual([]);
    const files = await readdir(folder);
    expect(files.filter((name) => name !== 'history' && !name.startsWith('node-coverage-'))).toEqual([]);
    await mkdir(join(folder, 'cache'));
    expect(await call('node-apis.js#keepsBytecode', { input: { folder }, permissions })).toMatchObject({
      status: 3,
    });
    expect(await readdir(join(folder, 'cache'))).toEqual([]);
  });

  test('V8 takes no bytecode from a plugin', async () => {
    const { call } = await startBackend({ sandbox });
    const { outcomes, works } = (await call('node-apis.js#runsBytecode')) as {
      outcomes: Outcomes;
      works: unknown[];
    };
    expect(Object.keys(outcomes).length).toBe(18);
    expect(gotten(outcomes)).toEqual([]);
    expect(works).toEqual([2, 3, 4, 5, 6, true]);
  });
});
