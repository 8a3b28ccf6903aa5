import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { packageRoot } from '../../../kit/files/paths.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { serviceManagerOf, writeServiceFile } from '../service/service-manager.ts';
import { quote } from '../service/unit.ts';
import { homeFlag, registeredAgent } from './registration.ts';

const UNIT_NAME = 'svc-agent.service';

/** @spec docs/operations.md "Agents" */
export const install = defineCommand({
  name: 'agent install',
  summary: 'Print or write a systemd unit that runs the agent',
  example: 'svc agent install > svc-agent.service',
  args: z.object({
    write: z.boolean().default(false).describe('write it to the folder of the service manager'),
    user: z.boolean().default(false).describe('the user service instead of the system service'),
    home: homeFlag,
  }),
  async run({ write, user, home }, { cwd, env, ui }) {
    const { folder } = await registeredAgent(home, { cwd, env });
    // The path is absolute, because systemd starts the unit in another working directory.
    const unit = unitText(folder, user);
    if (!write) return ok({ unit, file: null });
    const { manager, file: platformFile } = serviceManagerOf(user, env);
    if (manager !== 'systemd')
      throw new PlatformError(
        'NOT_IMPLEMENTED',
        'This machine has no systemd. Start `svc agent run` with its own service manager.',
      );
    const file = join(dirname(platformFile), UNIT_NAME);
    writeServiceFile({ file }, unit);
    const scope = user ? ' --user' : '';
    ui.note(`Start it:\n  systemctl${scope} daemon-reload && systemctl${scope} enable --now ${UNIT_NAME}`);
    return ok({ unit, file });
  },
  text: ({ unit, file }: { unit: string; file: string | null }) => file ?? unit.trimEnd(),
});

/**
 * Returns the text of the systemd unit. The agent exits with code 4 if the gateway has refused the host. In this case,
 * the unit does not restart the agent.
 */
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
