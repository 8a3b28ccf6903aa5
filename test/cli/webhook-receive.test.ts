import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startInbound } from '../daemons/gateway/support/inbound.ts';
import { runCli } from '../support/cli.ts';
import { tempDir } from '../support/daemon.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';

async function remote() {
  const gateway = await startInbound();
  const cwd = await tempDir();
  const run = (...words: string[]) =>
    runCli([...words, '--url', gateway.url, '--token', ADMIN_TOKEN], {
      cwd,
      env: { PATH: process.env.PATH },
    });
  return { gateway, cwd, run };
}

test('provision prints a URL with the namespace for a provider that cannot send it, and says so', async () => {
  const { run } = await remote();
  const first = await run('webhooks', 'provision', 'inbound', 'github');
  expect(first.stdout).toContain('/webhooks/inbound/github?namespace=default');
  expect(first.stderr).toContain('The URL contains the namespace');
  const without = await run('webhooks', 'provision', 'inbound', 'github', '--no-namespace-in-url');
  expect(without.stdout).not.toContain('?namespace');
  const other = await run('webhooks', 'provision', 'inbound', 'plain');
  expect(other.stdout).not.toContain('?namespace');
  expect(other.stderr).not.toContain('The URL contains the namespace');
});

test('send --file sends a body as it is, with its content type', async () => {
  const { cwd, run } = await remote();
  await run('webhooks', 'provision', 'inbound', 'form');
  await writeFile(join(cwd, 'body.txt'), 'id=9&a=b');
  const sent = await run('webhooks', 'send', 'inbound', 'form', '--file', 'body.txt', '--json');
  expect(JSON.parse(sent.stdout)).toMatchObject({
    result: { status: 200, body: { result: { payload: { id: '9', a: 'b' } } } },
  });
  const type = ['--content-type', 'application/json'];
  const refused = await run('webhooks', 'send', 'inbound', 'form', '--file', 'body.txt', ...type);
  expect([refused.code, refused.stderr + refused.stdout]).toEqual([1, expect.stringContaining('415')]);
  expect((await run('webhooks', 'send', 'inbound', 'form', '--file', 'absent')).code).toBe(2);
});

test('expect-secret prints the URL and the end of the window, and names webhooks that take no secret', async () => {
  const { run } = await remote();
  const opened = await run('webhooks', 'expect-secret', 'inbound', 'taken', '--minutes', '5');
  expect(opened.stdout).toMatch(/url +http.*\/webhooks\/inbound\/taken\nopen until +\d{4}-/);
  const refused = await run('webhooks', 'expect-secret', 'inbound', 'plain');
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringContaining('takes no secret from its sender'),
  ]);
});
