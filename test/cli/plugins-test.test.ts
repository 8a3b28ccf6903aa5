import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Files, writeFiles } from '../daemons/marketplace/support.ts';
import { tempDir } from '../support/daemon.ts';
import { runSvc } from './svc.ts';

/** A plugin whose dependency on the platform is installed; its tests do not use it. */
const plugin = async (tests: Files): Promise<string> =>
  writeFiles(join(await tempDir(), 'shop'), {
    'package.json': { type: 'module' },
    'node_modules/svc-platform/package.json': {},
    ...tests,
  });

const FAILING = `import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { total } from '../total.js';

describe('totals', () => {
  test('are sums', () => { console.log('one line'); });
  test('of nothing are zero', () => {
    assert.deepEqual({ total: total() }, { total: 0 });
  });
  test.skip('later', () => {});
});
test('throws', () => total('x'));
test('planned', { todo: true }, () => {});
`;
const TOTAL = `export function total(text) {
  if (text) throw Object.assign(new Error('no number'), { code: 'VALIDATION_ERROR' });
  return 1;
}
`;

test('each result and each fault is in the JSON, with file, line, column, code and remedy', async () => {
  const folder = await plugin({
    'total.js': TOTAL,
    'test/a.test.js': FAILING,
    'test/b.test.js': 'export const a = 1;\nexport const run = () => { a b };\n',
    'test/c.test.ts': "import { test } from 'node:test';\nenum Color { red }\ntest('x', () => {});\n",
  });
  const { code, json } = await runSvc(folder, ['plugins', 'test', '--json']);
  expect([code, json.error.code]).toEqual([1, 'EXECUTION_ERROR']);
  const { counts, tests, faults, output } = json.error.details;
  expect(counts).toEqual({ passed: 1, failed: 4, skipped: 1, todo: 1 });
  expect(output).toContain('one line\n');
  expect(tests).toHaveLength(7);
  expect(tests[0]).toEqual({
    ...{ name: 'totals > are sums', status: 'passed', file: join(folder, 'test/a.test.js') },
    ...{ line: 6, column: 3, durationMs: expect.any(Number) },
  });
  const remedy = expect.stringMatching(/^[A-Z s].*\S$/);
  const at = (file: string, line: number, column: number | null) => ({
    file: join(folder, file),
    line,
    column,
  });
  expect(faults).toEqual([
    {
      ...{ code: 'ERR_ASSERTION', path: '', test: 'totals > of nothing are zero', remedy },
      ...at('test/a.test.js', 8, 12),
      ...{
        message: expect.stringContaining('strictly deep-equal'),
        expected: '{"total":0}',
        actual: '{"total":1}',
      },
    },
    // The place is that of the plugin's code, not of the test.
    {
      ...{ code: 'VALIDATION_ERROR', path: '', test: 'throws', message: 'no number', remedy },
      ...at('total.js', 2, 33),
    },
    {
      ...{ code: 'EXECUTION_ERROR', path: '', test: 'test/b.test.js', remedy },
      ...{ ...at('test/b.test.js', 2, null), message: expect.stringContaining('Unexpected identifier') },
    },
    {
      ...{ code: 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX', path: '', test: 'test/c.test.ts', remedy },
      ...{ ...at('test/c.test.ts', 2, null), message: expect.stringContaining('enum') },
    },
  ]);
});

test('passing tests exit with 0, also in a plugin without tests', async () => {
  const passing = "import { test } from 'node:test';\ntest('is fine', () => {});\n";
  const folder = await plugin({ 'test/a.test.js': passing });
  const { code, json } = await runSvc(folder, ['plugins', 'test', '--json']);
  expect([code, json.result.counts, json.result.faults]).toEqual([
    0,
    { passed: 1, failed: 0, skipped: 0, todo: 0 },
    [],
  ]);
  const none = await runSvc(await plugin({}), ['plugins', 'test']);
  expect([none.code, none.stderr]).toEqual([0, expect.stringContaining('No tests were found.')]);
});

test('the text names each test and the place of each fault within 80 columns', async () => {
  const long = 'a name that is much longer than a line of a terminal with eighty columns can show at once';
  const folder = await plugin({
    'total.js': TOTAL,
    'test/a.test.js': FAILING.replace('are sums', long).replace("console.log('one line');", ''),
  });
  const { code, stdout } = await runSvc(folder, ['plugins', 'test']);
  expect(code).toBe(1);
  expect(stdout).toContain('✗ totals > of nothing are zero\n');
  expect(stdout).toContain('\n✗ total.js:2:33\n  throws\n  no number\n  fix: ');
  expect(stdout.trimEnd().split('\n').at(-1)).toBe('1 passed, 2 failed, 1 skipped, 1 todo');
  for (const line of stdout.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80);
});

test('escape sequences of a plugin do not reach the terminal', async () => {
  const hostile =
    "import { test } from 'node:test';\ntest('a\\u001b[2J', () => { throw new Error('b\\u001b[2J'); });\n";
  const folder = await plugin({ 'test/a.test.js': `${hostile}console.log('c\\u001b[2J');\n` });
  const { stdout, stderr } = await runSvc(folder, ['plugins', 'test']);
  expect(stdout + stderr).not.toContain('\u001b[2J');
});
