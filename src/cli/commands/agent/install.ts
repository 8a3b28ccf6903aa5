import { mkdirSync, writeFileSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { codeOf, messageOf, PlatformError } from '../../../kit/errors.ts';
import { packageRoot } from '../../../kit/paths.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { quote } from '../service/unit.ts';
import { homeFlag, registeredAgent } from './flags.ts';

const NAME = 'svc-agent.service';

/** @spec docs/operations.md "Agents" */
export const install = defineCommand({
  name: 'agent install',
  summary: 'Print a systemd unit that keeps the agent running, or write it (--write)',
  example: 'svc agent install > svc-agent.service',
  args: z.object({
    write: z.boolean().default(false).describe('write it where systemd looks for it'),
    user: z.boolean().default(false).describe("a unit of this user's own systemd"),
    home: homeFlag,
  }),
  async run({ write, user, home }, { env, ui }) {
    const { folder } = await registeredAgent(home, env);
    const unit = unitText(folder, user);
    if (!write) return ok({ unit, file: null });
    const file = user
      ? join(env.XDG_CONFIG_HOME ?? join(env.HOME ?? homedir(), '.config'), 'systemd', 'user', NAME)
      : join('/etc/systemd/system', NAME);
    writeUnit(file, unit);
    const scope = user ? ' --user' : '';
    ui.note(`Start it: systemctl${scope} daemon-reload && systemctl${scope} enable --now ${NAME}`);
    return ok({ unit, file });
  },
  text: ({ unit, file }: { unit: string; file: string | null }) => file ?? unit.trimEnd(),
});

function writeUnit(file: string, text: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text, { mode: 0o644 });
  } catch (error) {
    const denied = codeOf(error) === 'EACCES' || codeOf(error) === 'EPERM';
    throw new PlatformError('STORE_ERROR', `${file} cannot be written: ${messageOf(error)}.`, {
      details: denied ? { hint: 'Run it as root, or add --user for a unit of your own.' } : {},
      cause: error,
    });
  }
}

/** Exit code 4 says that the gateway refuses the host: starting again would not help. */
function unitText(home: string, user: boolean): string {
  const program = [process.execPath, join(packageRoot, 'bin', 'svc'), 'agent', 'run', '--home', home];
  const who = user ? '' : `User=${userInfo().username}\n`;
  return `[Unit]
Description=svc host agent
After=network-online.target
Wants=network-online.target

[Service]
ExecStart=${program.map(quote).join(' ')}
${who}Restart=always
RestartSec=5
RestartPreventExitStatus=4
TimeoutStopSec=60
KillMode=mixed
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=full
UMask=0077

[Install]
WantedBy=${user ? 'default.target' : 'multi-user.target'}
`;
}
