import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Files, writeFiles } from '../daemons/marketplace/support.ts';
import { tempDir } from '../support/daemon.ts';
import { runSvc } from './svc.ts';

const HEAD = '{\n"schema": "svc.plugin/3", "id": "shop", "version": "1.0.0",\n';
const manifest = (line: string) => ({ 'svc.plugin.json': `${HEAD}${line}\n}` });
const command = (more: string) => manifest(`"commands": [{ "id": "a", ${more} }]`);
const RUN = 'export const run = () => 1;\n';
const TESTS = "import assert from 'node:assert';\nimport { test } from 'node:test';\n";

interface Kind {
  run: 'validate' | 'test';
  files: Files;
  /** File and line of the fault. */
  place: [file: string, line: number];
  code: string;
  remedy: string | RegExp;
}

const MANIFEST = ['svc.plugin.json', 3] as [string, number];
const KINDS: Record<string, Kind> = {
  'an unknown field': {
    ...{ run: 'validate', files: manifest('"comands": []'), place: MANIFEST, code: 'INVALID_MANIFEST' },
    remedy: 'Write "commands".',
  },
  'a field of the wrong type': {
    ...{ run: 'validate', files: command('"handler": "h.js#run", "timeoutMs": "soon"'), place: MANIFEST },
    ...{ code: 'INVALID_MANIFEST', remedy: 'Change the value: it must be a number, not a string.' },
  },
  'a misspelt permission': {
    ...{ run: 'validate', files: manifest('"permissions": { "netwrok": [] }'), place: MANIFEST },
    ...{ code: 'INVALID_MANIFEST', remedy: 'Write "network".' },
  },
  'an unknown permission of the platform': {
    ...{ run: 'validate', files: manifest('"permissions": { "platform": { "camera": true } }') },
    ...{ place: MANIFEST, code: 'INVALID_MANIFEST' },
    remedy: 'Remove the key. docs/manifest.md lists all keys.',
  },
  'a syntax error of the manifest': {
    ...{ run: 'validate', files: manifest('"commands": [,]'), place: MANIFEST, code: 'INVALID_MANIFEST' },
    remedy: /^Correct the JSON syntax there/,
  },
  'a missing handler file': {
    ...{ run: 'validate', files: command('"handler": "absent.js#run"'), place: MANIFEST },
    ...{ code: 'INVALID_HANDLER', remedy: 'Create the file absent.js, or correct the path.' },
  },
  'a missing export': {
    ...{ run: 'validate', files: command('"handler": "h.js#rnu"'), place: MANIFEST },
    ...{ code: 'INVALID_HANDLER', remedy: 'Write "run".' },
  },
  'a handler of another kind': {
    run: 'validate',
    files: {
      ...command('"handler": "w.js#run"'),
      'w.js':
        "import { defineWebhook } from 'svc-platform/sdk';\nexport const run = defineWebhook({ execute() {} });",
    },
    ...{ place: MANIFEST, code: 'INVALID_HANDLER' },
    remedy: 'Define the export with the define function for a command.',
  },
  'a syntax error of a handler': {
    run: 'validate',
    files: {
      ...command('"handler": "b.js#run"'),
      'b.js': 'const a = 1;\nexport const run = () => { a b };\n',
    },
    ...{ place: ['b.js', 2], code: 'INVALID_HANDLER', remedy: /^Correct the code at this position/ },
  },
  'a missing schema file': {
    run: 'validate',
    files: command('"handler": "h.js#run", "input": { "$ref": "absent.json" }'),
    ...{ place: MANIFEST, code: 'INVALID_HANDLER' },
    remedy: 'Create the file absent.json, or correct the path.',
  },
  'an invalid JSON Schema': {
    run: 'validate',
    files: {
      ...command('"handler": "h.js#run", "input": { "$ref": "s.json" }'),
      's.json': { type: 'objec' },
    },
    ...{ place: MANIFEST, code: 'INVALID_HANDLER' },
    remedy: 'Correct the JSON Schema in s.json, or the reference to it.',
  },
  'a failed assertion': {
    ...{ run: 'test', files: { 'a.test.js': `${TESTS}test('adds', () => assert.equal(1, 2));\n` } },
    ...{ place: ['a.test.js', 3], code: 'ERR_ASSERTION' },
    remedy: 'Correct the plugin, or the expected value of the test.',
  },
  'an error of the code under test': {
    run: 'test',
    files: {
      'a.test.js': `${TESTS}import { run } from './t.js';\ntest('runs', () => run());\n`,
      't.js': "export function run() {\n  throw new Error('no price');\n}\n",
    },
    ...{ place: ['t.js', 2], code: 'EXECUTION_ERROR' },
    remedy: /^Correct the code at this position/,
  },
  'a test file with a syntax error': {
    ...{ run: 'test', files: { 'a.test.js': `${TESTS}test('adds', => 1);\n` }, place: ['a.test.js', 3] },
    ...{ code: 'EXECUTION_ERROR', remedy: /^Correct the file at this position/ },
  },
  'a missing import of a test': {
    run: 'test',
    files: { 'a.test.js': `${TESTS}import { run } from './absent.js';\ntest('runs', () => run());\n` },
    ...{ place: ['a.test.js', 1], code: 'ERR_MODULE_NOT_FOUND', remedy: /^Correct the file/ },
  },
};

test.each(Object.entries(KINDS))('%s has a file, a line, a code and a remedy', async (_, kind) => {
  const folder = await writeFiles(join(await tempDir(), 'shop'), {
    ...{ 'package.json': { type: 'module' }, 'h.js': RUN },
    ...(kind.run === 'test' ? { 'node_modules/svc-platform/package.json': {} } : {}),
    ...kind.files,
  });
  const { code, json } = await runSvc(folder, ['plugins', kind.run, '--json']);
  expect([code, json.ok]).toEqual([1, false]);
  const [fault, ...more] = json.error.details.faults;
  expect(more).toEqual([]);
  const { file, line } = fault;
  expect({ place: [file.slice(folder.length + 1), line], code: fault.code }).toEqual({
    place: kind.place,
    code: kind.code,
  });
  expect(fault.message).toMatch(/\S/);
  if (typeof kind.remedy === 'string') expect(fault.remedy).toBe(kind.remedy);
  else expect(fault.remedy).toMatch(kind.remedy);
});
