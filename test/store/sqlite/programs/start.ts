import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

export interface Program {
  child: ChildProcess;
  pid: number;
  /** Whole lines printed so far. */
  lines: string[];
  /** What it wrote to its standard error, where it is to fail; otherwise that is the test's own. */
  errors(): string;
  /** Waits until so many lines were printed; throws when the program ends before. */
  printed(count: number): Promise<void>;
  kill(): Promise<void>;
  /** Its exit code. */
  ended: Promise<number | null>;
}

/** Programs that are to end with an error. */
const FAILING: ReadonlySet<string> = new Set(['lose-log']);

/** Starts one of this folder's programs in a process of its own; ended with the test. */
export function startProgram(
  name: 'accept-deliveries' | 'acknowledge' | 'end' | 'keep-objects' | 'lose-log' | 'own',
  ...args: string[]
): Program {
  const file = fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
  const child = spawn(process.execPath, [file, ...args], {
    stdio: ['ignore', 'pipe', FAILING.has(name) ? 'pipe' : 'inherit'],
  });
  const ended = once(child, 'close').then(([code]) => code as number | null);
  const lines: string[] = [];
  let rest = '';
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n');
    rest = parts.pop()!;
    lines.push(...parts);
  });

  async function kill(): Promise<void> {
    child.kill('SIGKILL');
    await ended;
  }
  async function printed(count: number): Promise<void> {
    while (lines.length < count) {
      const code = await Promise.race([ended, once(child.stdout!, 'data').then(() => 'more' as const)]);
      if (code !== 'more' && lines.length < count)
        throw new Error(`${name} ended with ${code} after ${lines.length} lines`);
    }
  }
  onTestFinished(kill);
  return { child, pid: child.pid!, lines, errors: () => errors, printed, kill, ended };
}
