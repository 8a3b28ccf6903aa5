import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { escapeControlsIn, escapeToSingleLines } from '../../../kit/security/escape-controls.ts';
import { defineCommand, ok, streamed } from '../../define-command.ts';
import { shellWord } from '../../shell-word.ts';
import type { Style } from '../../style.ts';
import { vendoredState } from '../../vendor/vendored-platform.ts';
import { helpWidth, wrap } from '../../wrap.ts';
import { placeText } from './faults/located-fault.ts';
import { runTests } from './tests/run-tests.ts';
import { type TestCounts, type TestFault, TestReport, type TestResult } from './tests/test-report.ts';

interface Tested {
  folder: string;
  counts: TestCounts;
  tests: TestResult[];
  faults: TestFault[];
  /** Last part of the text that the tests printed. */
  output: string;
}

/** @spec docs/plugins.md "Testing" */
export const test = defineCommand({
  name: 'plugins test',
  summary: "Run a plugin's tests with the Node version of svc",
  example: 'svc plugins test ./plugins/orders',
  args: z.object({
    folder: z.string().default('.').describe('plugin folder; default: current folder'),
    watch: z.boolean().default(false).describe('rerun the tests when a file changes'),
  }),
  positionals: ['folder'],
  async run({ folder: given, watch }, context) {
    const { ui, cwd, globals } = context;
    const folder = resolve(cwd, given);
    await requireRunnable(folder);
    const { fault } = await vendoredState(folder);
    if (fault) ui.note(`! ${fault}: svc plugins repair ${shellWord(folder)}`);
    if (watch) return streamed(await watchTests(folder));
    const report = new TestReport(folder);
    const code = await runTests(folder, (event) => {
      const result = report.take(event);
      if (globals.json) return;
      if (result) ui.line(resultLine(result, ui.out));
      else if (/^test:std(?:out|err)$/.test(event.type)) ui.raw(event.data.message ?? '');
    });
    const { counts, tests, faults, output } = report;
    if (tests.length === 0) ui.note('No tests were found. Name test files *.test.js or *.test.ts.');
    if (!globals.json) {
      for (const line of summaryLines(report, cwd, ui.out)) ui.line(line);
      return streamed(code);
    }
    const tested: Tested = { folder, counts, tests, faults, output };
    if (code === 0) return ok(tested);
    const failed = `${counts.failed} of ${tests.length} tests in ${folder} failed`;
    throw new PlatformError('EXECUTION_ERROR', `${failed} (exit code ${code}).`, { details: { ...tested } });
  },
});

const MARK = { passed: '✓', failed: '✗', skipped: '-', todo: '-' } as const;

function resultLine({ name, status, durationMs }: TestResult, style: Style): string {
  const mark = { passed: style.green, failed: style.red, skipped: style.dim, todo: style.dim }[status];
  const note =
    status === 'skipped' || status === 'todo' ? ` (${status})` : durationMs > 99 ? ` (${durationMs} ms)` : '';
  const [first = '', ...others] = wrap(escapeToSingleLines(name) + note, helpWidth(process.stdout) - 2);
  return [`${mark(MARK[status])} ${first}`, ...others.map((line) => `  ${line}`)].join('\n');
}

function summaryLines({ counts, faults }: TestReport, cwd: string, style: Style): string[] {
  const width = helpWidth(process.stdout) - 2;
  const indented = (text: string) => wrap(text, width).map((line) => `  ${line}`);
  const described = faults.flatMap((fault) => [
    '',
    `${style.red('✗')} ${placeText(fault, cwd)}`,
    ...indented(escapeToSingleLines(fault.test)),
    ...escapeControlsIn(fault.message).split('\n').flatMap(indented),
    ...indented(`fix: ${fault.remedy}`),
  ]);
  const totals = Object.entries(counts).filter(([status, count]) => count > 0 || status === 'passed');
  return [...described, '', totals.map(([status, count]) => `${count} ${status}`).join(', ')];
}

/** Throws INVALID_MANIFEST if the folder is not a package, and MISSING_DEPENDENCY if svc-platform is not installed. */
async function requireRunnable(folder: string): Promise<void> {
  if (!existsSync(join(folder, 'package.json')))
    throw new PlatformError('INVALID_MANIFEST', `${folder} is not a plugin: it has no package.json.`, {
      details: { folder, hint: 'Pass the folder of a plugin: svc plugins test <folder>' },
    });
  for (let from = folder; ; from = dirname(from)) {
    if (existsSync(join(from, 'node_modules', 'svc-platform', 'package.json'))) return;
    if (from === dirname(from)) break;
  }
  const { spec, fault } = await vendoredState(folder);
  const repair = `svc plugins repair ${shellWord(folder)}`;
  throw new PlatformError(
    'MISSING_DEPENDENCY',
    `svc-platform is not installed in ${folder}${fault ? `: ${fault}` : ''}.`,
    { details: { folder, hint: spec === null || fault ? repair : `npm install, or: ${repair}` } },
  );
}

/** Runs the tests again after each change, until the user interrupts. Node prints the results. */
function watchTests(cwd: string): Promise<number> {
  return new Promise((done, reject) => {
    const child = spawn(process.execPath, ['--test', '--watch'], { cwd, stdio: 'inherit' });
    child.once('error', reject);
    child.once('close', (code) => done(code ?? 1));
  });
}
