import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { launchdPlist, stopMsOf, systemdUnit } from '../../src/cli/commands/service/unit.ts';
import { PlatformConfig } from '../../src/contracts/index.ts';
import { tempDir } from '../support/daemon.ts';
import { runSvc } from './svc.ts';

const ANALYZE = '/usr/bin/systemd-analyze';

/** Names that mean something to systemd, to a shell and to XML. */
async function oddProject(): Promise<string> {
  const folder = join(await tempDir(), `50% "o'clock" $HOME & <co>`);
  await mkdir(folder);
  await writeFile(join(folder, 'svc.config.json'), '{}');
  return folder;
}

test.skipIf(process.platform !== 'linux')(
  'install prints a unit, --write puts it into the systemd folder, and uninstall removes it',
  async () => {
    const folder = await oddProject();
    const XDG_CONFIG_HOME = await tempDir();
    const file = join(XDG_CONFIG_HOME, 'systemd/user/svc-platform.service');
    const printed = await runSvc(folder, ['service', 'install', '--user'], { XDG_CONFIG_HOME });
    expect([printed.code, printed.stdout.startsWith('[Unit]'), existsSync(file)]).toEqual([0, true, false]);
    const { json } = await runSvc(folder, ['service', 'install', '--user', '--write', '--json'], {
      XDG_CONFIG_HOME,
    });
    expect(json.result).toMatchObject({ manager: 'systemd', file });
    expect([await readFile(file, 'utf8'), (await stat(file)).mode & 0o777]).toEqual([printed.stdout, 0o644]);
    const gone = await runSvc(folder, ['service', 'uninstall', '--user', '--json'], { XDG_CONFIG_HOME });
    expect([gone.json.result.removed, existsSync(file)]).toEqual([true, false]);
    const again = await runSvc(folder, ['service', 'uninstall', '--user', '--json'], { XDG_CONFIG_HOME });
    expect([again.code, again.json.result.removed]).toEqual([0, false]);
  },
);

test.skipIf(!existsSync(ANALYZE))(
  'systemd accepts the units, also with unusual project paths and SVC_HOME',
  async () => {
    const folder = await oddProject();
    const home = join(await tempDir(), 'data $X 5%');
    for (const [flags, env] of [
      [[], {}],
      [['--user'], {}],
      [[], { SVC_HOME: home }],
    ] as const) {
      const { stdout } = await runSvc(folder, ['service', 'install', ...flags], { ...env });
      const file = join(await tempDir(), 'svc-platform.service');
      await writeFile(file, stdout);
      const args = ['verify', ...(flags.length > 0 ? ['--user'] : []), file];
      // A user's own systemd wants a folder to run in. A unit that it does not take fails the command.
      const user = { XDG_RUNTIME_DIR: await tempDir(), HOME: await tempDir() };
      execFileSync(ANALYZE, args, { env: { ...process.env, ...user }, stdio: 'pipe' });
      expect(stdout.includes('Environment="SVC_HOME=')).toBe('SVC_HOME' in env);
    }
  },
);

test.skipIf(process.platform !== 'linux')('a unit of a node with some services starts these', async () => {
  const { stdout } = await runSvc(await oddProject(), ['service', 'install', '--services', 'gateway,rest']);
  expect(stdout).toMatch(/^ExecStart=.* up .*--services rest,gateway$/m);
});

test('unit files keep paths unchanged, whatever characters they contain', () => {
  const options = {
    projectDir: '/srv/50% of "us" & <co>',
    dataDir: '/srv/data',
    configFile: '/srv/50% of "us" & <co>/svc.config.json',
    profile: 'production',
    ownHome: false,
    user: false,
    stopMs: stopMsOf(PlatformConfig.parse({ workflow: { drainMs: 60_000 } })),
  };
  // 60 s, four times 8 s, 4 s to force each, and a margin.
  expect(systemdUnit(options)).toContain('TimeoutStopSec=127\n');
  expect(launchdPlist(options)).toContain('<integer>127</integer>');
  expect(systemdUnit(options)).toContain('WorkingDirectory=/srv/50%% of "us" & <co>\n');
  expect(systemdUnit(options)).toContain(
    '--config "/srv/50%% of \\"us\\" & <co>/svc.config.json" --profile production\n',
  );
  expect(launchdPlist(options)).toContain(
    '<string>/srv/50% of "us" &amp; &lt;co&gt;/svc.config.json</string>',
  );
});
