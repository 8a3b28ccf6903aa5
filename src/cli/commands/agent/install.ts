import { userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { PlatformError } from '../../../kit/errors.ts';
import { packageRoot } from '../../../kit/paths.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { placeOf, writePlace } from '../service/place.ts';
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
  async run({ write, user, home }, { cwd, env, ui }) {
    const { folder } = await registeredAgent(home, env);
    // The unit is read in another folder than ours.
    const unit = unitText(resolve(cwd, folder), user);
    if (!write) return ok({ unit, file: null });
    const { manager, file: platformFile } = placeOf(user, env);
    if (manager !== 'systemd')
      throw new PlatformError(
        'NOT_IMPLEMENTED',
        'This machine has no systemd; start `svc agent run` by what it has.',
      );
    const file = join(dirname(platformFile), NAME);
    writePlace({ file }, unit);
    const scope = user ? ' --user' : '';
    ui.note(`Start it:\n  systemctl${scope} daemon-reload && systemctl${scope} enable --now ${NAME}`);
    return ok({ unit, file });
  },
  text: ({ unit, file }: { unit: string; file: string | null }) => file ?? unit.trimEnd(),
});

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
