import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createClientCredentials } from '../../src/contracts/index.ts';
import { runCli } from '../support/cli.ts';
import { tempDir } from '../support/daemon.ts';
import { startGateway } from '../support/gateway.ts';

/** `svc` as a user of their own, in a folder. */
function svcOf(home: string) {
  const env = { PATH: process.env.PATH, HOME: home };
  return (cwd: string, args: string[], stdin?: string) => runCli(args, { cwd, env, stdin });
}

test('later commands of a project, or of the user outside one, use a login until logout', async () => {
  const gateway = await startGateway();
  const { clientId, clientSecret } = await gateway.call(createClientCredentials, { body: { name: 'ci' } });
  const project = await tempDir();
  await mkdir(join(project, 'plugins/mine'), { recursive: true });
  await writeFile(join(project, 'svc.config.json'), '{}');
  const elsewhere = await tempDir();
  const svc = svcOf(await tempDir());
  const login = ['login', clientId, '--url', gateway.url, '--json'];

  expect(JSON.parse((await svc(project, login, clientSecret)).stdout).result).toMatchObject({
    usedIn: project,
  });
  const inside = await svc(join(project, 'plugins/mine'), ['whoami', '--json']);
  expect(JSON.parse(inside.stdout).result).toMatchObject({ hostId: expect.stringMatching(/^client:/) });
  const outside = await svc(elsewhere, ['whoami']);
  expect(outside.code).not.toBe(0);
  expect(outside.stderr).not.toContain('svc up');

  await svc(elsewhere, login, clientSecret);
  expect(JSON.parse((await svc(elsewhere, ['whoami', '--json'])).stdout).ok).toBe(true);
  await svc(project, ['logout']);
  expect((await svc(project, ['whoami'])).code).not.toBe(0);
});

test('outside a project, no command advises to start a platform there', async () => {
  const svc = svcOf(await tempDir());
  const folder = await tempDir();
  for (const args of [
    ['status'],
    ['plugins', 'list'],
    ['restart'],
    ['workflows', 'list'],
    ['webhooks', 'list'],
  ]) {
    const { stdout, stderr } = await svc(folder, args);
    expect(stdout + stderr).toMatch(/svc init/);
    expect(stdout + stderr).not.toContain('svc up');
  }
});
