import { mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Environment } from '../../../kit/config/config.ts';
import { codeOf, messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import { userConfigFolder, userHome } from '../../../kit/files/user-folder.ts';
import { writeWholeFile } from '../../../supervisor/data-folder.ts';

const UNIT_NAME = 'svc-platform.service';
const PLIST_NAME = 'svc-platform.plist';

/** The unit file of the platform, and the commands of the service manager (systemd or launchd). */
export interface ServiceManager {
  manager: 'systemd' | 'launchd';
  /** Name of the platform's service in the service manager. */
  unit: string;
  file: string;
  /** Shell command that starts the service now and at each boot. */
  start: string;
  /** Shell command that stops the running service after its unit file is removed. */
  stopRunning: string;
}

export function serviceManagerOf(user: boolean, env: Environment): ServiceManager {
  if (process.platform === 'darwin') {
    const file = user
      ? join(userHome(env), 'Library', 'LaunchAgents', PLIST_NAME)
      : join('/Library/LaunchDaemons', PLIST_NAME);
    return {
      manager: 'launchd',
      unit: 'svc-platform',
      file,
      start: `launchctl load -w ${file}`,
      stopRunning: 'launchctl remove svc-platform',
    };
  }
  const folder = user ? join(userConfigFolder(env), 'systemd', 'user') : '/etc/systemd/system';
  const systemctl = user ? 'systemctl --user' : 'systemctl';
  return {
    manager: 'systemd',
    unit: UNIT_NAME,
    file: join(folder, UNIT_NAME),
    start: `${systemctl} daemon-reload && ${systemctl} enable --now ${UNIT_NAME}`,
    stopRunning: `${systemctl} stop ${UNIT_NAME} && ${systemctl} daemon-reload`,
  };
}

/** Writes the unit file. Throws STORE_ERROR if writing fails, with a hint if permission is denied. */
export function writeServiceFile({ file }: Pick<ServiceManager, 'file'>, text: string): void {
  attempt(file, () => {
    mkdirSync(dirname(file), { recursive: true });
    writeWholeFile(file, text, 0o644);
  });
}

export function removeServiceFile({ file }: ServiceManager): void {
  attempt(file, () => rmSync(file, { force: true }));
}

function attempt(file: string, change: () => void): void {
  try {
    change();
  } catch (thrown) {
    const error = thrown instanceof PlatformError ? thrown.cause : thrown;
    const isDenied = ['EACCES', 'EPERM', 'EROFS'].includes(codeOf(error) ?? '');
    throw new PlatformError('STORE_ERROR', `Cannot change ${file}: ${messageOf(error)}.`, {
      details: {
        file,
        ...(isDenied ? { hint: 'Run the command as root, or add --user for a user service.' } : {}),
      },
      cause: error,
    });
  }
}
