import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCli } from '../support/cli.ts';
import { PROGRAM, testPlatform } from './platform.ts';

const WALK = join(import.meta.dirname, '../fixtures/projects/walk');
/** Clears the screen, sets the title, writes black on black, and reverses the direction of what follows. */
const HOSTILE = '\u001b[2J\u001b]0;owned\u0007\u001b[30;40m\u001b[32m\u009b2J\u202egood\u007f\u2066';
const CODE = `const HOSTILE = ${JSON.stringify(HOSTILE)};
export async function boom(ctx) {
  ctx.log.warn('logged ' + HOSTILE, { [HOSTILE]: HOSTILE });
  throw new Error('thrown ' + HOSTILE);
}
export async function refuse() {
  return { exitCode: 1, error: { code: 'NO_WAY', message: 'refused ' + HOSTILE } };
}
export async function tell() {
  return { exitCode: 0, result: { [HOSTILE]: 'told ' + HOSTILE } };
}
`;

function expectHarmless(text: string, what: string): void {
  expect(text, what).toContain('\\x1b[2J\\x1b]0;owned\\x07');
  expectNoControls(text, what);
}

function expectNoControls(text: string, what: string): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there.
  const found = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.exec(text);
  expect(found && text.slice(Math.max(0, found.index - 40), found.index + 40), what).toBeNull();
}

test('hostile text of plugins and senders is printed on the terminal without control characters', {
  timeout: 240_000,
}, async () => {
  const platform = await testPlatform(
    { plugins: ['./plugins/*'], workflows: ['./workflows/*.yaml'] },
    { NO_COLOR: '1' },
    PROGRAM,
  );
  const { folder, env, start, svc } = platform;
  await cp(WALK, folder, { recursive: true });
  const manifestFile = join(folder, 'plugins/toy/svc.plugin.json');
  const manifest = JSON.parse(await readFile(manifestFile, 'utf8'));
  for (const id of ['boom', 'tell'])
    manifest.commands.push({ id, handler: `hostile.js#${id}`, description: `described ${HOSTILE}` });
  manifest.commands[1].handler = 'hostile.js#refuse';
  await writeFile(manifestFile, JSON.stringify(manifest));
  await writeFile(join(folder, 'plugins/toy/hostile.js'), CODE);
  await writeFile(
    join(folder, 'workflows/bad.yaml'),
    'id: bad\njobs:\n  main:\n    steps:\n      - id: boom\n        uses: toy/boom\n',
  );
  expect((await svc('up', '-d')).code).toBe(0);
  const shown = async (...args: string[]): Promise<string> => {
    const { stdout, stderr } = await runCli(args, { cwd: folder, env });
    return stdout + stderr;
  };

  expectHarmless(await shown('run', 'toy', '--help'), 'help');
  expectHarmless(await shown('run', 'toy', 'tell'), 'result');
  expectHarmless(await shown('run', 'toy', 'refuse'), 'declared failure');
  expectNoControls(await shown('run', 'toy', 'boom'), 'thrown error');
  expectNoControls(await shown('plugins', 'show', 'toy'), 'plugin');
  expectNoControls(await shown('workflows', 'run', 'bad', '--follow'), 'followed run');
  expectNoControls(await shown('workflows', 'runs'), 'runs');
  expectHarmless(await shown('logs', '--raw', '--plugin', 'toy'), 'logs');

  const url = (await svc('status', '--env')).json.result.env.SVC_GATEWAY_URL;
  await fetch(`${url}/webhooks/toy/ping`, {
    method: 'POST',
    headers: { 'content-type': 'text/plain', 'x-svc-namespace': 'default', 'user-agent': 'a\u009b2Jb' },
    body: HOSTILE,
  });
  const sent = await svc('webhooks', 'provision', 'toy', 'ping');
  expect(sent.json.ok).toBe(true);
  const { json } = await svc('webhooks', 'send', 'toy', 'ping', '--data', JSON.stringify({ text: HOSTILE }));
  expectNoControls(await shown('webhooks', 'deliveries'), 'deliveries');
  expectNoControls(await shown('webhooks', 'show', json.result.webhookId), 'delivery');
  expectNoControls(await shown('webhooks', 'show', HOSTILE.replaceAll('\u0000', '')), 'an argument');

  const tail = start('webhooks', 'tail', '--cursor', '0');
  await expect.poll(tail.stdout, { timeout: 30_000 }).toContain('toy ping');
  tail.child.kill('SIGINT');
  expectNoControls((await tail.done).stdout, 'tail');

  const told = await svc('run', 'toy', 'tell');
  expect(told.json.result).toEqual({ [HOSTILE]: `told ${HOSTILE}` });

  for (const args of [
    ['run', 'toy', 'tell'],
    ['run', 'toy', '--help'],
    ['run', 'toy', 'refuse'],
    ['run', 'toy', 'boom'],
    ['plugins', 'show', 'toy'],
    ['logs', '--plugin', 'toy'],
    ['webhooks', 'show', json.result.webhookId],
    ['webhooks', 'show', HOSTILE.replaceAll('\u0000', '')],
  ]) {
    const { stdout } = await svc(...args);
    expectNoControls(stdout, args.join(' '));
    if (args[0] === 'run' && args[2] === 'tell')
      expect(stdout).toContain('\\u001b[32m\\u009b2J\\u202egood\\u007f\\u2066');
  }
  const records = start('webhooks', 'tail', '--cursor', '0', '--json');
  await expect.poll(records.stdout, { timeout: 30_000 }).toContain('"ping"');
  records.child.kill('SIGINT');
  expectNoControls((await records.done).stdout, 'tail --json');
});
