import { existsSync } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord } from '../../../kit/data/is-record.ts';
import { messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import { runTool, type ToolPlace } from './run-tool.ts';

/** Options for every npm call, which disable package scripts and superfluous output. */
export const NPM_QUIET = [
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
  '--no-update-notifier',
  '--loglevel=error',
];
/** Options for `npm install`. In newer npm versions, the options also exclude packages that are not from a registry. */
const INSTALL = [
  'install',
  '--omit=dev',
  '--omit=peer',
  '--no-bin-links',
  '--no-save',
  '--allow-git=none',
  '--allow-remote=none',
  '--allow-file=none',
  '--allow-directory=none',
  '--workspaces=false',
  '--omit-lockfile-registry-resolved=false',
  ...NPM_QUIET,
];
/** Matches dependency specifiers that are paths. Packages from a registry have a version, range or tag instead. */
const BY_PATH = /^(?:file:|link:|workspace:|[./~])/;
const BY_GIT = /^(?:git[+:@]|ssh:|github:|gitlab:|bitbucket:|gist:)|\.git(?:#|$)|^[\w.-]+\/[\w.-]+(?:#|$)/;
const BY_ADDRESS = /^https?:/;
/**
 * Matches a registry in the list of npm's settings. A leading semicolon marks a setting that another setting overrides.
 */
const REGISTRY_SETTING = /^(; )?(?:@[^:=]+:)?registry = "([^"]+)"/gm;

export interface InstallOptions {
  /** Whether npm's list of installed versions becomes the `package-lock.json` of the plugin. */
  keepsLock?: boolean;
}

/**
 * Installs the dependencies of the plugin in `at.cwd`. Throws VALIDATION_ERROR if any dependency is not from a
 * registry. Throws UPSTREAM_UNAVAILABLE if npm fails.
 */
export async function installDependencies(
  at: ToolPlace,
  { keepsLock = false }: InstallOptions = {},
): Promise<void> {
  const file = join(at.cwd, 'package.json');
  const text = await readFile(file, 'utf8').catch(() => '{}');
  const manifest = parseManifest(text);
  const { dependencies = {}, optionalDependencies = {} } = manifest;
  const needed = { ...dependencies, ...optionalDependencies };
  if (Object.keys(needed).length === 0) return;
  for (const [name, range] of Object.entries(needed)) requireByName(name, String(range));
  const modules = join(at.cwd, 'node_modules');
  // Removes a `node_modules` folder that came with the plugin. Otherwise, npm would add its packages to that folder.
  await rm(modules, { recursive: true, force: true });
  // npm would also resolve development and peer dependencies, which might exist only on the author's machine.
  const { devDependencies: _dev, peerDependencies: _peer, ...toInstall } = manifest;
  await writeFile(file, JSON.stringify(toInstall));
  await runTool('npm', INSTALL, at).catch((error) => {
    throw asRefusal(error);
  });
  await writeFile(file, text);
  // npm creates no folder if every dependency is optional and failed to install.
  if (!existsSync(modules)) return;
  const lock = join(modules, '.package-lock.json');
  await requireFromRegistry(lock, at);
  if (keepsLock) await rename(lock, join(at.cwd, 'package-lock.json'));
  else await rm(lock);
}

/** Parses a `package.json`. Throws VALIDATION_ERROR if the text is not a JSON object. */
function parseManifest(text: string): Record<string, object | undefined> {
  let why = 'it is not an object';
  try {
    const manifest: unknown = JSON.parse(text);
    if (isRecord(manifest)) return manifest as Record<string, object>;
  } catch (error) {
    why = messageOf(error);
  }
  throw new PlatformError('VALIDATION_ERROR', `The plugin's package.json cannot be read: ${why}`);
}

function requireByName(name: string, range: string): void {
  const way = wayOf(range);
  if (way === undefined) return;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `The plugin depends on ${name} by the ${way} "${range}"; publish it, or bundle it into the plugin.`,
    { details: { dependency: name } },
  );
}

function wayOf(range: string): string | undefined {
  if (BY_PATH.test(range)) return 'path';
  if (BY_GIT.test(range)) return 'git address';
  return BY_ADDRESS.test(range) ? 'address' : undefined;
}

/**
 * Converts npm errors about dependencies outside a registry to VALIDATION_ERROR, because a retry cannot fix such
 * errors.
 */
function asRefusal(error: unknown): unknown {
  const said = messageOf(error);
  const why = said.includes('ERR_ACCESS_DENIED')
    ? 'npm would have to start a program for it, such as git'
    : /code EALLOW(?:GIT|REMOTE|FILE|DIRECTORY)\b/.test(said) && said;
  if (!why) return error;
  return new PlatformError(
    'VALIDATION_ERROR',
    `Among the plugin's dependencies is one that does not come from a registry (${why}); bundle it into the plugin.`,
    { cause: error },
  );
}

/** A package in npm's lock file. */
interface Installed {
  /** Address of the package. Absent for bundled packages, and for some packages that are requested by exact version. */
  resolved?: string;
  link?: boolean;
}

/**
 * Rejects packages that are not from a registry. Transitive dependencies can name any location. A check after the
 * installation is safe, because no fetched code has run yet.
 */
async function requireFromRegistry(lock: string, at: ToolPlace): Promise<void> {
  const { packages } = JSON.parse(await readFile(lock, 'utf8')) as { packages: Record<string, Installed> };
  const hosts = await registryHosts(at);
  for (const [path, { resolved, link = false }] of Object.entries(packages)) {
    if (!link && (resolved === undefined || hosts.includes(hostOf(resolved) ?? ''))) continue;
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    throw new PlatformError(
      'VALIDATION_ERROR',
      `Among the plugin's dependencies is ${name} from "${shown(resolved)}", which is not a registry configured in npm (${hosts.join(', ')}); bundle it into the plugin.`,
      { details: { dependency: name } },
    );
  }
}

async function registryHosts(at: ToolPlace): Promise<string[]> {
  const settings = await runTool('npm', ['config', 'list', '--long'], at);
  // The first registry is npm's default. Its address is always accepted, because npm treats this address in a lock file
  // as the configured registry.
  const registries = [...settings.matchAll(REGISTRY_SETTING)].filter(
    ([, isReplaced], n) => n === 0 || !isReplaced,
  );
  return [...new Set(registries.flatMap(([, , url]) => hostOf(url!) ?? []))];
}

/** Returns the host of an HTTP address. Returns undefined for other addresses. */
function hostOf(address: string): string | undefined {
  return BY_ADDRESS.test(address) && URL.canParse(address) ? new URL(address).host : undefined;
}

/** Returns an address without the parts that can contain secrets, for use in messages. */
function shown(address = ''): string {
  if (!URL.canParse(address)) return address;
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname}`;
}
