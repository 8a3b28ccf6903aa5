import { join } from 'node:path';
import { expect, test } from 'vitest';
import { remedyFor } from '../../src/cli/commands/plugins/faults/remedies.ts';
import { type Files, writeFiles } from '../daemons/marketplace/support.ts';
import { tempDir } from '../support/daemon.ts';
import { runSvc } from './svc.ts';

const ES_MODULE = { type: 'module' };
const HANDLER = 'export const run = () => 1;\n';

/** The faults of a plugin with these files, without their messages and with files relative to its folder. */
async function faultsOf(files: Files) {
  const folder = await writeFiles(join(await tempDir(), 'shop'), files);
  const { code, json } = await runSvc(folder, ['plugins', 'validate', '--json']);
  expect(code).toBe(1);
  return json.error.details.faults.map(({ file, message, ...rest }: { file: string; message: string }) => {
    expect(message).not.toBe('');
    return { file: file.slice(folder.length + 1), ...rest };
  });
}

test('each fault of a manifest file names its line, column, path, code and remedy', async () => {
  const manifest = `{
  "schema": "svc.plugin/3",
  "id": "shop",
  "version": "1.0.0",
  "comands": [],
  "webhooks": [
    { "event": "paid", "handler": "h.js#run", "auth": { "type": "hmca" } },
    { "event": "sent", "auth": { "type": "secret", "header": "x-s" } }
  ]
}`;
  const at = { file: 'svc.plugin.json', code: 'INVALID_MANIFEST' };
  expect(await faultsOf({ 'svc.plugin.json': manifest, 'h.js': HANDLER })).toEqual([
    {
      ...at,
      path: 'webhooks[0].auth.type',
      line: 7,
      column: 57,
      remedy: expect.stringMatching(/^Use one of these types: secret, hmac, /),
    },
    // A missing key has no position; that of the object that lacks it is given.
    { ...at, path: 'webhooks[1].handler', line: 8, column: 5, remedy: expect.stringMatching(/^Add the key/) },
    { ...at, path: 'comands', line: 5, column: 3, remedy: 'Write "commands".' },
  ]);
});

test('faults of handlers name the line of the reference, or the line of the code that cannot be loaded', async () => {
  const manifest = `{
  "schema": "svc.plugin/3", "id": "shop", "version": "1.0.0",
  "commands": [
    { "id": "a", "handler": "h.js#rnu" },
    { "id": "b", "handler": "absent.js#run" },
    { "id": "c", "handler": "broken.js#run" },
    { "id": "d", "handler": "typed.ts#run" }
  ]
}`;
  const faults = await faultsOf({
    'package.json': ES_MODULE,
    'svc.plugin.json': manifest,
    'h.js': HANDLER,
    'broken.js': 'const a = 1;\nexport const run = () => { a b };\n',
    'typed.ts': 'export enum Color { red }\nexport const run = () => 1;\n',
  });
  const code = 'INVALID_HANDLER';
  expect(faults).toEqual([
    {
      code,
      path: 'commands[0].handler',
      file: 'svc.plugin.json',
      line: 4,
      column: 18,
      remedy: 'Write "run".',
    },
    {
      ...{ code, path: 'commands[1].handler', file: 'svc.plugin.json', line: 5, column: 18 },
      remedy: 'Create the file absent.js, or correct the path.',
    },
    {
      ...{ code, path: 'commands[2].handler', file: 'broken.js', line: 2, column: 30 },
      remedy: expect.stringContaining('Correct the code'),
    },
    {
      ...{ code, path: 'commands[3].handler', file: 'typed.ts', line: 1, column: expect.any(Number) },
      remedy: expect.stringContaining('Correct the code'),
    },
  ]);
});

test('a syntax error of the manifest has the position of the wrong character', async () => {
  const files = { 'svc.plugin.json': '{\n  "id": "shop",\n  "version": "1.0.0",\n}\n' };
  expect(await faultsOf(files)).toEqual([
    {
      ...{ code: 'INVALID_MANIFEST', path: '', file: 'svc.plugin.json', line: 4, column: 1 },
      remedy: expect.stringContaining('trailing commas'),
    },
  ]);
});

test('faults of a manifest in TypeScript name the line of the property, also in a constant', async () => {
  const manifest = `import { defineManifest } from 'svc-platform/sdk';

const webhooks = [
  { event: 'paid', handler: 'h.js#run', auth: { type: 'secret' } },
] as const;

export default defineManifest({
  schema: 'svc.plugin/3',
  id: 'shop', // not "version"
  version: 'one',
  webhooks,
} as never);
`;
  const code = 'INVALID_MANIFEST';
  const files = { 'package.json': { ...ES_MODULE, svc: 'manifest.ts' }, 'h.js': HANDLER };
  const at = { code, file: 'manifest.ts', remedy: expect.any(String) };
  expect(await faultsOf({ ...files, 'manifest.ts': manifest })).toEqual([
    { ...at, path: 'webhooks[0].auth.header', line: 4, column: 41 },
  ]);
  expect(
    await faultsOf({ ...files, 'manifest.ts': manifest.replace("'secret'", "'secret', header: 'x'") }),
  ).toEqual([{ ...at, path: 'version', line: 10, column: 3 }]);
  expect(await faultsOf({ ...files, 'manifest.ts': "const a = 1;\nthrow new Error('no');\n" })).toEqual([
    { ...at, path: '', line: 2, column: 7 },
  ]);
});

test('a folder without a manifest has a fault without a line', async () => {
  expect(await faultsOf({ 'h.js': HANDLER })).toEqual([
    {
      ...{ code: 'INVALID_MANIFEST', path: '', file: 'svc.plugin.json', line: null, column: null },
      remedy: expect.stringContaining('svc plugins create'),
    },
  ]);
});

test('the text for people has the positions and remedies too', async () => {
  const folder = await writeFiles(await tempDir(), {
    'svc.plugin.json': '{\n"schema": "svc.plugin/3", "id": "shop",\n"version": "1.0.0", "comands": []}',
  });
  const { stderr } = await runSvc(folder, ['plugins', 'validate']);
  expect(stderr).toContain('\n  svc.plugin.json:3:21 comands: "comands" is not a key');
  expect(stderr).toContain('\n    fix: Write "commands".\n');
});

test('a fault that no rule covers still has a remedy', () => {
  for (const code of ['INVALID_MANIFEST', 'SANDBOX_ERROR', 'VALIDATION_ERROR'])
    expect(remedyFor({ code, path: 'x', message: 'odd' })).toMatch(/^[A-Z].*\S$/);
});
