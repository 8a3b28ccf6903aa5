import { execFile, spawnSync } from 'node:child_process';
import { chmod, cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { completionLines } from '../../src/cli/completion/complete.ts';
import { tempDir } from '../support/daemon.ts';
import { PROGRAM, type TestPlatform, testPlatform } from './platform.ts';

const WALK = join(import.meta.dirname, '../fixtures/projects/walk');
const has = (shell: string): boolean => spawnSync(shell, ['-c', 'true']).status === 0;

interface Completed {
  code: number;
  lines: string[];
  stderr: string;
}

/** A project, and `svc` on PATH as shells find it. */
async function project(running: boolean): Promise<TestPlatform & { bin: string }> {
  const platform = await testPlatform(
    { plugins: ['./plugins/*'], workflows: ['./workflows/*.yaml'] },
    {},
    PROGRAM,
  );
  await cp(WALK, platform.folder, { recursive: true });
  const bin = await tempDir();
  const program = join(bin, 'svc');
  await writeFile(program, `#!/bin/sh\nexec ${PROGRAM.map((part) => `'${part}'`).join(' ')} "$@"\n`);
  await chmod(program, 0o755);
  if (running) await platform.svc('up', '-d');
  return { ...platform, bin };
}

function runIn(
  { folder, env, bin }: TestPlatform & { bin: string },
  command: string,
  ...args: string[]
): Promise<Completed> {
  const options = { cwd: folder, env: { ...env, PATH: `${bin}:${env.PATH}` } };
  return new Promise((resolve) =>
    execFile(command, args, options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, lines: stdout.split('\n').filter(Boolean), stderr }),
    ),
  );
}

/** What `svc complete` offers for the words, without descriptions. */
async function offered(platform: TestPlatform & { bin: string }, ...words: string[]): Promise<string[]> {
  const { code, lines, stderr } = await runIn(platform, 'svc', 'complete', '--', ...words);
  expect([code, stderr]).toEqual([0, '']);
  return lines.map((line) => line.split('\t')[0]!);
}

test('nouns, verbs, flags, choices, codes and files complete without a running platform', async () => {
  const words = async (...typed: string[]): Promise<string[]> =>
    (await completionLines(typed)).map((line) => line.split('\t')[0]!);
  expect(await words('')).toEqual(expect.arrayContaining(['up', 'webhooks', 'completion', 'help']));
  expect(await words('web')).toEqual(['webhooks']);
  expect(await words('webhook', 'p')).toEqual(['provision', 'pause', 'providers']);
  expect(await words('--profile', 'x', 'hosts', 'sh')).toEqual(['show']);
  expect(await words('logs', '--le')).toEqual(['--level']);
  expect(await words('logs', '--level', 'w')).toEqual(['warn']);
  expect(await words('logs', '--level=w')).toEqual(['--level=warn']);
  expect(await words('logs', 'gateway', 'g')).toEqual([]);
  expect(await words('logs', 'gateway', 're')).toEqual(['rest']);
  expect(await words('webhooks', 'deliveries', '--status', 'fai')).toEqual(['failed']);
  expect(await words('explain', 'WEBHOOK_')).toEqual(['WEBHOOK_NOT_FOUND']);
  expect(await words('--config', '')).toEqual([':files']);
  expect(await words('plugins', 'link', '')).toEqual([':files']);
  expect(await words('down', '')).toEqual([]);
  expect(await words('run', 'toy', 'greet', '--', '')).toEqual([]);
  expect(await completionLines(['hosts', 'li'])).toEqual([
    'list\tList registered hosts and whether they are connected',
  ]);
});

test('completion prints nothing when the gateway is unreachable or the config is invalid', async () => {
  const platform = await project(false);
  expect(await offered(platform, 'plugins', 'show', '')).toEqual([]);
  await writeFile(join(platform.folder, 'svc.config.json'), '{ broken');
  expect(await offered(platform, 'hosts', 'revoke', '')).toEqual([]);
  expect(await offered(platform, 'nonsense', '')).toEqual([]);
});

test('real shells complete ids from the gateway', { timeout: 120_000 }, async () => {
  const platform = await project(true);
  const { svc } = platform;
  const run = (await svc('workflows', 'run', 'hold')).json.result.id as string;
  const { clientId } = (await svc('clients', 'create', 'nightly')).json.result;
  // Under load a completion gives up and offers nothing; the next key press repeats it.
  await expect.poll(() => offered(platform, 'plugins', 'show', '')).toEqual(['toy']);
  await expect.poll(() => offered(platform, 'webhooks', 'provision', 'toy', '')).toEqual(['ping']);
  expect(await offered(platform, 'webhooks', 'provision', 'other', '')).toEqual([]);
  await expect.poll(() => offered(platform, 'webhooks', 'deliveries', '--plugin', '')).toEqual(['toy']);
  await expect.poll(() => offered(platform, 'workflows', 'show', '')).toContain(run);
  await expect.poll(() => offered(platform, 'workflows', 'run', '')).toEqual(['chat', 'hold']);
  await expect.poll(() => offered(platform, 'clients', 'revoke', '')).toContain(clientId);
  await expect.poll(() => offered(platform, 'run', 'toy', '')).toEqual(['greet', 'refuse']);
  await expect.poll(() => offered(platform, 'schedules', 'trigger', 'hold')).toHaveLength(1);
  // The flags on the line say whom to ask, and as whom.
  expect(await offered(platform, 'plugins', 'show', '--url', 'http://127.0.0.1:1', '')).toEqual([]);
  expect(await offered(platform, 'plugins', 'show', '--token', 'wrong', '')).toEqual([]);
  // A name that somebody chose comes as text: nothing of it speaks to the terminal or becomes a candidate.
  await svc('clients', 'create', 'evil\n$(reboot)\u001b[2J');
  const { lines } = await runIn(
    platform,
    'svc',
    'complete',
    '--',
    'clients',
    'revoke',
    '--namespace',
    'default',
    '',
  );
  expect(lines.every((line) => /^client_[\w-]+(?:\t[^\p{Cc}]*)?$/u.test(line))).toBe(true);

  const shells = [inBash, ...(has('fish') ? [inFish] : []), ...(has('zsh') ? [inZsh] : [])];
  for (const inShell of shells) await vi.waitFor(() => inShell(platform), { timeout: 60_000 });
});

async function inBash(platform: TestPlatform & { bin: string }): Promise<void> {
  const script = `source <(svc completion bash)
    ask() { COMP_LINE=$1; COMP_POINT=\${#1}; _svc; echo "$1> \${COMPREPLY[*]}"; }
    complete -p svc
    ask 'svc webh'; ask 'svc plugins show '; ask 'svc logs --level=w'; ask 'svc --config ./svc'`;
  const { lines, stderr } = await runIn(platform, 'bash', '--norc', '-c', script);
  expect(stderr).toBe('');
  expect(lines).toEqual([
    expect.stringContaining('-F _svc svc'),
    'svc webh> webhooks',
    'svc plugins show > toy',
    'svc logs --level=w> warn',
    'svc --config ./svc> ./svc.config.json',
  ]);
}

async function inFish(platform: TestPlatform & { bin: string }): Promise<void> {
  const ask = (line: string): string => `complete -C '${line}'`;
  const script = [
    'svc completion fish | source',
    ask('svc webh'),
    ask('svc plugins show '),
    ask('svc --config ./svc'),
  ];
  const { lines, stderr } = await runIn(platform, 'fish', '--no-config', '-c', script.join('; '));
  expect(stderr).toBe('');
  expect(lines.map((line) => line.split('\t')[0])).toEqual(['webhooks', 'toy', './svc.config.json']);
}

/** A terminal of zsh's own, a Tab as if typed, and the line as it stands then. */
async function inZsh(platform: TestPlatform & { bin: string }): Promise<void> {
  const script = `zmodload zsh/zpty; zpty -b shell zsh -f -i
    wait_for() { local part all; for i in {1..200}; do
      zpty -r -t shell part && all+=$part; [[ $all == *$1* ]] && return; sleep 0.05; done; print -r -- "$all" >&2; }
    type_line() { rm -f line; zpty -w -n shell "$1"$'\\t\\C-x'; for i in {1..200}; do [[ -s line ]] && break; sleep 0.05; done; cat line; }
    zpty -w shell 'PS1=; autoload -Uz compinit; compinit -u -D; source <(svc completion zsh)
      keep() { print -r -- "$BUFFER" >! line; BUFFER= }; zle -N keep; bindkey "^X" keep; print -n REA; print DY'
    wait_for READY
    type_line 'svc webh'; type_line 'svc plugins show '; type_line 'svc logs --level=w'`;
  const { lines, stderr } = await runIn(platform, 'zsh', '-f', '-c', script);
  expect(stderr).toBe('');
  expect(lines.map((line) => line.trim())).toEqual([
    'svc webhooks',
    'svc plugins show toy',
    'svc logs --level=warn',
  ]);
}
