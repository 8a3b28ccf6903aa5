import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** Error of a test, as the reporter sends it. */
export interface SentError {
  message?: string;
  stack?: string;
  code?: string;
  failureType?: string;
  cause?: SentError | string;
  /** Values of a failed comparison, as JSON text. */
  expected?: string;
  actual?: string;
}

/** Event of Node's test runner, reduced to the fields that svc uses. */
export interface TestEvent {
  type: string;
  data: {
    name?: string;
    nesting?: number;
    file?: string;
    line?: number;
    column?: number;
    message?: string;
    skip?: boolean | string;
    todo?: boolean | string;
    details?: { duration_ms?: number; type?: string; error?: SentError };
  };
}

/** Reporter that prints each event as one line of JSON. Node loads it as a module, so it has no imports. */
const REPORTER = `
const json = (value) => { try { return JSON.stringify(value)?.slice(0, 4000); } catch { return undefined; } };
const short = (text) => (typeof text === 'string' ? text.slice(0, 16000) : undefined);
const sent = (error, depth = 0) =>
  typeof error !== 'object' || error === null || depth > 3 ? short(String(error)) : {
    message: short(error.message), stack: short(error.stack), code: short(error.code), failureType: error.failureType,
    ...('expected' in error ? { expected: json(error.expected), actual: json(error.actual) } : {}),
    ...(error.cause === undefined ? {} : { cause: sent(error.cause, depth + 1) }),
  };
export default async function* (events) {
  for await (const { type, data } of events) {
    if (!/^test:(?:start|pass|fail|stdout|stderr)$/.test(type)) continue;
    const { name, nesting, file, line, column, message, skip, todo, details } = data;
    const about = details && { duration_ms: details.duration_ms, type: details.type, error: details.error && sent(details.error) };
    yield JSON.stringify({ type, data: { name, nesting, file, line, column, message, skip, todo, details: about } }) + '\\n';
  }
}`;

/** Runs the tests of a folder with Node's test runner, and calls `take` for each event. Resolves with the exit code. */
export async function runTests(folder: string, take: (event: TestEvent) => void): Promise<number> {
  const reporter = `data:text/javascript,${encodeURIComponent(REPORTER)}`;
  const child = spawn(process.execPath, ['--test', `--test-reporter=${reporter}`], {
    cwd: folder,
    stdio: ['inherit', 'pipe', 'inherit'],
  });
  const ended = new Promise<number>((done, reject) => {
    child.once('error', reject);
    child.once('close', (code) => done(code ?? 1));
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const event = eventOf(line);
    if (event) take(event);
  }
  return ended;
}

function eventOf(line: string): TestEvent | undefined {
  try {
    return JSON.parse(line) as TestEvent;
  } catch {
    return undefined;
  }
}
