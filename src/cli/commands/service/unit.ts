import { userInfo } from 'node:os';
import { join } from 'node:path';
import { type PlatformConfig, SERVICE_NAMES, type ServiceName } from '../../../contracts/index.ts';
import { drainDelayMsOf } from '../../../kit/config/drain-delay.ts';
import { packageRoot } from '../../../kit/files/paths.ts';
import { seconds } from '../../../kit/time/duration.ts';
import { STOP_DEADLINES } from '../../../kit/time/stop-deadlines.ts';

export interface UnitOptions {
  projectDir: string;
  dataDir: string;
  configFile: string | null;
  profile: string;
  /** Services from `--services`, or undefined for all services. */
  services?: readonly ServiceName[] | undefined;
  /** Whether SVC_HOME sets the data folder. */
  ownHome: boolean;
  /** Whether the unit belongs to the user instead of the system. */
  user: boolean;
  /** Time limit for the whole platform to stop, in ms. */
  stopMs: number;
}

/**
 * Returns the time limit for stopping the platform, in ms. The time limits of all services are added, because services
 * stop one after another.
 */
export function stopMsOf(config: PlatformConfig): number {
  return SERVICE_NAMES.reduce(
    (sum, name) => sum + drainDelayMsOf(config, name) + config[name].drainMs + STOP_DEADLINES.forceMs,
    MARGIN_MS,
  );
}
const MARGIN_MS = seconds(15);

/** Returns the command line that the service manager runs: `svc up` in the foreground. */
function program({
  configFile,
  profile,
  services,
}: Pick<UnitOptions, 'configFile' | 'profile' | 'services'>): string[] {
  const config = configFile ? ['--config', configFile] : [];
  const selected = services ? ['--services', services.join(',')] : [];
  return [
    process.execPath,
    join(packageRoot, 'bin', 'svc'),
    'up',
    ...config,
    '--profile',
    profile,
    ...selected,
  ];
}

/**
 * Returns a systemd unit that restarts a crashed supervisor. RestrictNamespaces is not set, because the plugin sandbox
 * needs namespaces. ProtectSystem=strict is not set, because the platform writes to the data folder.
 */
export function systemdUnit(options: UnitOptions): string {
  const home = options.ownHome ? `Environment=${quote(`SVC_HOME=${options.dataDir}`)}\n` : '';
  const userLine = options.user ? '' : `User=${userInfo().username}\n`;
  return `[Unit]
Description=svc platform in ${specifier(options.projectDir)}
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=exec
ExecStart=${program(options).map(quote).join(' ')}
WorkingDirectory=${specifier(options.projectDir)}
${home}${userLine}Restart=on-failure
RestartSec=2
# Exit code after SIGTERM; "svc down" exits with 0.
SuccessExitStatus=143
# Each service takes at most its drainDelayMs and drainMs plus 4 s, then it is killed.
TimeoutStopSec=${Math.ceil(options.stopMs / 1000)}
KillMode=mixed
NoNewPrivileges=yes
ProtectSystem=full
UMask=0077
LimitNOFILE=65536
StandardOutput=null
StandardError=journal

[Install]
WantedBy=${options.user ? 'default.target' : 'multi-user.target'}
`;
}

/** Returns the launchd property list. launchd restarts the supervisor unless the supervisor exits successfully. */
export function launchdPlist(options: UnitOptions): string {
  const home = options.ownHome
    ? `  <key>EnvironmentVariables</key>\n  <dict>\n    <key>SVC_HOME</key>\n    <string>${escapeXml(options.dataDir)}</string>\n  </dict>\n`
    : '';
  const words = program(options).map((word) => `    <string>${escapeXml(word)}</string>`);
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>svc-platform</string>
  <key>ProgramArguments</key>
  <array>
${words.join('\n')}
  </array>
  <key>WorkingDirectory</key>
  <string>${escapeXml(options.projectDir)}</string>
${home}  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ExitTimeOut</key>
  <integer>${Math.ceil(options.stopMs / 1000)}</integer>
  <key>Umask</key>
  <integer>63</integer>
  <key>StandardOutPath</key>
  <string>/dev/null</string>
  <key>StandardErrorPath</key>
  <string>${escapeXml(join(options.dataDir, 'logs', 'launchd.err'))}</string>
</dict>
</plist>
`;
}

/** Quotes a command line argument of a systemd unit. In such arguments, `%`, `$`, quotes and spaces are special. */
export function quote(word: string): string {
  const escaped = word.replace(/%/g, '%%').replace(/\$/g, '$$$$').replace(/["\\]/g, '\\$&');
  return /[\s"'\\;]/.test(word) ? `"${escaped}"` : escaped;
}

/** Escapes a path in a systemd setting that is not a command line. Only `%` is special in such settings. */
const specifier = (text: string): string => text.replace(/%/g, '%%');

const escapeXml = (text: string): string =>
  text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
