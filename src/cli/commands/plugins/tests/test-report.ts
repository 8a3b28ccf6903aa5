import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isInside } from '../../../../plugins/index.ts';
import type { LocatedFault } from '../faults/located-fault.ts';
import type { SentError, TestEvent } from './run-tests.ts';

export interface TestResult {
  /** Name with the names of its suites, such as `orders > are counted`. */
  name: string;
  status: 'passed' | 'failed' | 'skipped' | 'todo';
  file: string;
  line: number | null;
  column: number | null;
  durationMs: number;
}

/** A failed test, or a test file that cannot be loaded. */
export interface TestFault extends LocatedFault {
  test: string;
  /** JSON of the compared values. Only failed assertions have them. */
  expected?: string;
  actual?: string;
}

export type TestCounts = Record<TestResult['status'], number>;

const MAX_OUTPUT_CHARS = 64 * 1024;
const FRAME = /((?:file:\/\/)?\/[^()\n]*?):(\d+):(\d+)\)?$/;
/** Matches the first line of an error that ends a process: the file and line, without a column. */
const HEAD = /^((?:file:\/\/)?\/[^\n]*?):(\d+)$/m;
const THROWN = /^(?:\w*(?:Error|Exception)\b[^\n]*)$/m;

/** Collects the results of a test run from the events of Node's test runner. */
export class TestReport {
  readonly #folder: string;
  readonly #suites: string[] = [];
  readonly #errorOutput = new Map<string, string>();
  readonly tests: TestResult[] = [];
  readonly faults: TestFault[] = [];
  readonly counts: TestCounts = { passed: 0, failed: 0, skipped: 0, todo: 0 };
  #output = '';

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The last part of the text that the tests printed. */
  get output(): string {
    return this.#output;
  }

  /** Adds an event. Returns the result of a test that has ended, except of suites. */
  take({ type, data }: TestEvent): TestResult | undefined {
    const file = resolve(this.#folder, data.file ?? '');
    if (type === 'test:start') this.#suites[data.nesting ?? 0] = data.name ?? '';
    if (type === 'test:stdout' || type === 'test:stderr') this.#print(type, file, data.message ?? '');
    if (type !== 'test:pass' && type !== 'test:fail') return undefined;
    const error = data.details?.error;
    if (data.details?.type === 'suite' && (!error || error.failureType === 'subtestsFailed'))
      return undefined;
    const { line = null, column = null, skip, todo } = data;
    const isTodo = todo !== undefined && todo !== false;
    const isSkipped = skip !== undefined && skip !== false;
    const status = isSkipped ? 'skipped' : isTodo ? 'todo' : type === 'test:pass' ? 'passed' : 'failed';
    const names = [...this.#suites.slice(0, data.nesting ?? 0), data.name ?? ''];
    const durationMs = Math.round(data.details?.duration_ms ?? 0);
    const result: TestResult = { name: names.join(' > '), status, file, line, column, durationMs };
    this.tests.push(result);
    this.counts[status]++;
    if (status === 'failed') this.faults.push(this.#faultOf(result, error ?? {}));
    return result;
  }

  #print(type: string, file: string, text: string): void {
    this.#output = (this.#output + text).slice(-MAX_OUTPUT_CHARS);
    if (type !== 'test:stderr') return;
    this.#errorOutput.set(file, ((this.#errorOutput.get(file) ?? '') + text).slice(0, MAX_OUTPUT_CHARS));
  }

  #faultOf(test: TestResult, error: SentError): TestFault {
    const thrown = typeof error.cause === 'object' ? error.cause : error;
    // A file that cannot be loaded prints its error, and the test runner reports only "test failed".
    const isFile = resolve(this.#folder, test.name) === test.file;
    const printed = isFile ? this.#errorOutput.get(test.file) : undefined;
    const stack = printed ?? thrown.stack ?? '';
    const code =
      typeof thrown.code === 'string' && thrown.code !== 'ERR_TEST_FAILURE' ? thrown.code : undefined;
    const message = (printed && THROWN.exec(printed)?.[0]) ?? thrown.message ?? 'failed';
    return {
      code: code ?? /\[(ERR_\w+)\]/.exec(message)?.[1] ?? 'EXECUTION_ERROR',
      path: '',
      test: test.name,
      message: message.trim(),
      ...(this.#placeIn(stack) ?? { file: test.file, line: test.line, column: test.column }),
      remedy: remedyOf(code, error.failureType, printed !== undefined),
      ...(thrown.expected === undefined ? {} : { expected: thrown.expected }),
      ...(thrown.actual === undefined ? {} : { actual: thrown.actual }),
    };
  }

  /** Returns the first position in the plugin's own files that a stack names. */
  #placeIn(stack: string): Pick<TestFault, 'file' | 'line' | 'column'> | undefined {
    const head = HEAD.exec(stack);
    const frames = stack.split('\n').map((line) => FRAME.exec(line.trimEnd()));
    for (const found of [head, ...frames]) {
      const file = found && pathOf(found[1]!);
      if (!file || !isInside(this.#folder, file) || file.includes('/node_modules/')) continue;
      return { file, line: Number(found[2]), column: found[3] === undefined ? null : Number(found[3]) };
    }
    return undefined;
  }
}

function remedyOf(code: string | undefined, failureType: string | undefined, isLoading: boolean): string {
  if (isLoading) return 'Correct the file at this position: it ends before its tests are complete.';
  if (code === 'ERR_ASSERTION') return 'Correct the plugin, or the expected value of the test.';
  if (failureType === 'hookFailed') return 'Correct the hook (before, after, beforeEach or afterEach).';
  if (failureType === 'testTimeoutFailure')
    return 'Find the promise that does not settle, or raise the timeout.';
  if (failureType === 'cancelledByParent')
    return 'Await the test, or correct the suite that ended before it.';
  if (code && !code.startsWith('ERR_')) return `svc explain ${code} describes the cause of this error.`;
  return 'Correct the code at this position, or expect the error: assert.rejects.';
}

function pathOf(named: string): string | undefined {
  if (!named.startsWith('file:')) return named;
  try {
    return fileURLToPath(named);
  } catch {
    return undefined;
  }
}
