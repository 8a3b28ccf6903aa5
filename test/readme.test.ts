import { spawn } from 'node:child_process';
import { cp, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { SERVICE_NAMES } from '../src/contracts/index.ts';
import { packageRoot } from '../src/kit/files/paths.ts';
import { tempDir } from './support/daemon.ts';
import { freePort } from './support/ports.ts';
import { userEnvironment } from './support/user-environment.ts';

interface Exchange {
  command: string;
  /** As the page shows it. */
  output: string[];
}

/** Commands follow `$ `; what is indented below one, or belongs to its here-document, is a part of it. */
function exchangesOf(block: string): Exchange[] {
  const exchanges: Exchange[] = [];
  let end: string | null = null;
  for (const line of block.split('\n')) {
    const last = exchanges.at(-1);
    if (end === null && line.startsWith('$ ')) {
      exchanges.push({ command: line.slice(2), output: [] });
      end = /<<'(\w+)'/.exec(line)?.[1] ?? null;
    } else if (last && (end !== null || (last.output.length === 0 && line.startsWith('  ')))) {
      last.command += `\n${line}`;
      if (line === end) end = null;
    } else last?.output.push(line);
  }
  return exchanges;
}

/** What differs from run to run, and how wide columns are for it. */
const DIFFERS: ReadonlyArray<readonly [RegExp, string]> = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<id>'],
  [/\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ/g, '<time>'],
  [/\b\d+(?:\.\d+)?m?s\b/g, '<took>'],
  [/\bpid \d+/g, '<pid>'],
  [/^(secret +)[\w-]{43}$/g, '$1<secret>'],
  [/ +/g, ' '],
];

function plain(line: string): string {
  return DIFFERS.reduce((text, [pattern, placeholder]) => text.replace(pattern, placeholder), line).trimEnd();
}

/** As a pattern: `…` is anything in a line, a line of its own any lines. Services become ready in any order. */
function expectOutput(actual: string[], { command, output }: Exchange): void {
  const shown = inOrder(output.map(plain));
  const pattern = shown.map((line) =>
    line === '…' ? '(?:.*\\n)*?' : `${line.split('…').map(escaped).join('.*')}\\n`,
  );
  const text = inOrder(actual.map(plain))
    .map((line) => `${line}\n`)
    .join('');
  expect(text, `$ ${command}`).toMatch(new RegExp(`^${pattern.join('')}$`));
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

function inOrder(lines: string[]): string[] {
  const isReady = (line: string): boolean => line.startsWith('✓');
  return [...lines.filter(isReady).toSorted(), ...lines.filter((line) => !isReady(line))];
}

/** Runs all commands in one shell; resolves with what each printed, on stdout and stderr. */
async function runAll(commands: string[], cwd: string, env: NodeJS.ProcessEnv): Promise<string[][]> {
  const mark = '\u001e';
  const script = commands.map((command) => `printf '${mark}\\n'\n${command}\n`).join('');
  const shell = spawn('bash', ['-c', `exec 2>&1\n${script}`], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  shell.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  await new Promise((resolve) => shell.once('close', resolve));
  return output
    .split(`${mark}\n`)
    .slice(1)
    .map((part) => part.split('\n').slice(0, -1));
}

/** Folder and ports of the page; the test has others. */
const SHOWN_FOLDER = '/home/you/svc';
const SHOWN_PORTS: Record<string, number> = {
  gateway: 4000,
  rest: 5050,
  workflow: 7778,
  marketplace: 5070,
  state: 7777,
};

test('the transcript of the README happens as it says', { timeout: 120_000 }, async () => {
  const cwd = await tempDir();
  await symlink(join(packageRoot, 'bin'), join(cwd, 'bin'));
  await cp(join(packageRoot, 'examples'), join(cwd, 'examples'), { recursive: true });
  const ports = await Promise.all(SERVICE_NAMES.map(async (name) => [name, await freePort()] as const));
  const shown = await readFile(join(packageRoot, 'README.md'), 'utf8');
  let page = shown.replaceAll(SHOWN_FOLDER, cwd);
  for (const [name, port] of ports) page = page.replaceAll(`:${SHOWN_PORTS[name]}`, `:${port}`);
  const exchanges = [...page.matchAll(/^```console\n([\s\S]*?)\n```$/gm)].flatMap(([, block]) =>
    exchangesOf(block!),
  );
  expect(exchanges.length).toBeGreaterThan(12);

  const env = {
    ...userEnvironment(),
    ...Object.fromEntries(ports.map(([name, port]) => [`SVC_${name.toUpperCase()}_PORT`, String(port)])),
  };
  onTestFinished(async () => void (await runAll(['./bin/svc down'], cwd, env)));
  const printed = await runAll(
    exchanges.map(({ command }) => command),
    cwd,
    env,
  );
  for (const [index, exchange] of exchanges.entries()) expectOutput(printed[index] ?? [], exchange);
});
