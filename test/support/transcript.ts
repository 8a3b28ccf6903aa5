import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import type { AnyJson } from './any-json.ts';
import { spawnCli } from './cli.ts';
import { userEnvironment } from './user-environment.ts';

const run = promisify(execFile);

/** Returns the files of a page, which follow comments such as `<!-- file: bot.js -->`. */
export function filesOf(page: string): Array<[name: string, content: string]> {
  return [...page.matchAll(/<!-- file: (\S+) -->\n\n```\w+\n([\s\S]*?)```/g)].map(([, file, code]) => [
    file!,
    code!,
  ]);
}

/** The commands of the page, in order. Each is run with the variables of `env`; `echo` becomes stdin. */
export class Transcript {
  readonly #cwd: string;
  readonly #commands: string[];
  readonly env: Record<string, string>;

  constructor(page: string, cwd: string, env: Record<string, string>) {
    this.#cwd = cwd;
    this.env = env;
    this.#commands = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block]) =>
      block!.trim().split('\n'),
    );
  }

  get left(): number {
    return this.#commands.length;
  }

  /** Runs the next command, which must be one of curl, and returns its answer. */
  async curl(): Promise<AnyJson> {
    const [, command] = /^curl (.*)$/.exec(this.#commands.shift()!)!;
    const { stdout } = await run('curl', ['--silent', '--show-error', '--fail', ...this.#wordsOf(command!)]);
    return JSON.parse(stdout);
  }

  /** Runs the next command, which must begin like this, and returns its result. */
  async next(expected: string): Promise<AnyJson> {
    const line = this.#commands.shift()!;
    const [, stdin, command] = /^(?:echo "(.*)" \| )?svc (.*)$/.exec(line)!;
    expect(command!.startsWith(expected), `${command} instead of ${expected}`).toBe(true);
    const { code, json, stderr } = await spawnCli([...this.#wordsOf(command!), '--json'], {
      cwd: this.#cwd,
      env: { ...userEnvironment(), ...this.env },
      ...(stdin === undefined ? {} : { stdin: `${this.#filled(stdin)}\n` }),
    });
    expect(code, `${stderr}${JSON.stringify(json)}`).toBe(0);
    return json.result;
  }

  #filled(text: string): string {
    return text.replaceAll(/\$([A-Z_]+)/g, (_, name: string) => this.env[name]!);
  }

  #wordsOf(command: string): string[] {
    return [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, quoted, literal, plain]) =>
      literal === undefined ? this.#filled(quoted ?? plain!) : literal,
    );
  }
}
