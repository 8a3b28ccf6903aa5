import { userInfo } from 'node:os';
import { join } from 'node:path';
import { type PlatformConfig, SERVICE_NAMES } from '../../../contracts/index.ts';
import { seconds } from '../../../kit/duration.ts';
import { packageRoot } from '../../../kit/paths.ts';
import { STOP_DEADLINES } from '../../../kit/stop-deadlines.ts';

/** What a unit is made for. */
export interface UnitOptions {
  projectDir: string;
  dataDir: string;
  configFile: string | null;
  profile: string;
  /** Whether the data folder is one that SVC_HOME names. */
  ownHome: boolean;
  /** A unit of this user's own systemd, instead of the machine's. */
  user: boolean;
  /** Time that the whole platform may take to stop. */
  stopMs: number;
}

/** One service after another drains, and is ended by force a little later. */
export function stopMsOf(config: PlatformConfig): number {
  return SERVICE_NAMES.reduce((sum, name) => sum + config[name].drainMs + STOP_DEADLINES.forceMs, MARGIN_MS);
}
const MARGIN_MS = seconds(15);

/** Arguments of the program that a service manager starts: the foreground platform, whose stdout is its log. */
function program({ configFile, profile }: Pick<UnitOptions, 'configFile' | 'profile'>): string[] {
  const config = configFile ? ['--config', configFile] : [];
  return [process.execPath, join(packageRoot, 'bin', 'svc'), 'up', ...config, '--profile', profile];
}

/**
 * The supervisor restarts what crashes; systemd restarts the supervisor. Plugins need namespaces of their own for
 * their sandbox, so what would forbid those (RestrictNamespaces, ProtectSystem=strict without the data folder) stays out.
 */
export function systemdUnit(options: UnitOptions): string {
  const home = options.ownHome ? `Environment=${quote(`SVC_HOME=${options.dataDir}`)}\n` : '';
  const who = options.user ? '' : `User=${userInfo().username}\n`;
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
${home}${who}Restart=on-failure
RestartSec=2
# How the platform ends after SIGTERM; after "svc down" it ends with 0.
SuccessExitStatus=143
# A service takes at most its drainMs and 4 s; what is left then is ended by force.
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

/** For launchd: kept alive unless it ended well. */
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

/** A word of a command line as systemd reads it: `%` and `$` mean something, quotes hold blanks. */
export function quote(word: string): string {
  const escaped = word.replace(/%/g, '%%').replace(/\$/g, '$$$$').replace(/["\\]/g, '\\$&');
  return /[\s"'\\;]/.test(word) ? `"${escaped}"` : escaped;
}

/** A path outside of a command line: taken as it stands, but for `%`. */
const specifier = (text: string): string => text.replace(/%/g, '%%');

const escapeXml = (text: string): string =>
  text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
