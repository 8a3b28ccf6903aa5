import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { writeIdentity } from '../../src/agent/index.ts';
import { createHostKeys } from '../../src/kit/security/host-proof.ts';
import { runSvc } from '../cli/svc.ts';
import { tempDir } from '../support/daemon.ts';
import { identityOf } from './support.ts';

const ANALYZE = '/usr/bin/systemd-analyze';

/** A registration in a folder whose name means something to systemd and to a shell. */
async function registered(): Promise<{ cwd: string; home: string }> {
  const cwd = await tempDir();
  const home = `50% "o'clock" $HOME`;
  await mkdir(join(cwd, home));
  const host = { hostId: 'host_1', namespaceId: 'default', clientId: 'client_1', clientSecret: 's' };
  const identity = { ...host, keys: createHostKeys(), token: async () => '' };
  await writeIdentity(join(cwd, home), identityOf(identity as never, 'http://127.0.0.1:4000'));
  return { cwd, home };
}

test.skipIf(process.platform !== 'linux')(
  'install prints the unit; --write puts it into the systemd folder, and systemd accepts it',
  async () => {
    const { cwd, home } = await registered();
    const XDG_CONFIG_HOME = await tempDir();
    const file = join(XDG_CONFIG_HOME, 'systemd/user/svc-agent.service');
    const install = ['agent', 'install', '--user', '--home', home];
    const printed = await runSvc(cwd, install, { XDG_CONFIG_HOME });
    expect([printed.code, existsSync(file)]).toEqual([0, false]);
    // Absolute, whatever folder it was named from.
    const inUnit = join(cwd, home).replaceAll('%', '%%').replaceAll('$', '$$$$').replaceAll('"', '\\"');
    expect(printed.stdout).toContain(` agent run --home "${inUnit}"\n`);
    expect(printed.stdout).toContain('RestartPreventExitStatus=4\n');

    const written = await runSvc(cwd, [...install, '--write', '--json'], { XDG_CONFIG_HOME });
    expect(written.json.result.file).toBe(file);
    expect(written.stderr).toContain('systemctl --user enable --now svc-agent.service');
    expect([await readFile(file, 'utf8'), (await stat(file)).mode & 0o777]).toEqual([printed.stdout, 0o644]);
    if (!existsSync(ANALYZE)) return;
    // A user's own systemd wants a folder to run in. A unit that it does not take fails the command.
    const env = { ...process.env, XDG_RUNTIME_DIR: await tempDir(), HOME: await tempDir() };
    execFileSync(ANALYZE, ['verify', '--user', file], { env, stdio: 'pipe' });
  },
);

test('a machine that is not registered gets the command to register', async () => {
  const cwd = await tempDir();
  const { code, json } = await runSvc(cwd, ['agent', 'install', '--home', 'nothing', '--json']);
  expect([code, json.error.code]).toEqual([1, 'CONFIG_NOT_FOUND']);
  expect(json.error.details.hint).toContain('svc agent register');
});

test.skipIf(process.getuid?.() === 0)(
  'without root, installing a system unit is refused with a remedy',
  async () => {
    const { cwd, home } = await registered();
    const { code, json } = await runSvc(cwd, ['agent', 'install', '--write', '--home', home, '--json']);
    expect([code, json.error.code, json.error.details.hint]).toEqual([
      1,
      'STORE_ERROR',
      expect.stringContaining('--user'),
    ]);
  },
);
