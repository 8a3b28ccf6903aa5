import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, PlatformError } from '../../../kit/errors.ts';
import { isRecord } from '../../../kit/is-record.ts';
import { runTool, type ToolPlace } from './run-tool.ts';

/** For every npm: no script of a package runs, and nothing is said that nobody reads. */
export const NPM_QUIET = [
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
  '--no-update-notifier',
  '--loglevel=error',
];
/** What comes with a plugin comes from the registry: an npm that knows `--allow-…` fetches nothing else in the first place. */
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
/** A dependency that is no version, range or tag of a name. */
const BY_PATH = /^(?:file:|link:|workspace:|[./~])/;
const BY_GIT = /^(?:git[+:@]|ssh:|github:|gitlab:|bitbucket:|gist:)|\.git(?:#|$)|^[\w.-]+\/[\w.-]+(?:#|$)/;
const BY_ADDRESS = /^https?:/;
/** A registry among npm's settings; behind a semicolon when another one is used in its place. */
const REGISTRY_SETTING = /^(; )?(?:@[^:=]+:)?registry = "([^"]+)"/gm;

/**
 * Brings the dependencies of the plugin in `at.cwd` into its own `node_modules`. Nothing is asked of npm for a plugin that
 * depends on nothing, so that it installs without a network. Throws VALIDATION_ERROR for a package, of whatever depth,
 * that does not come from a registry; UPSTREAM_UNAVAILABLE.
 */
export async function installDependencies(at: ToolPlace): Promise<void> {
  const file = join(at.cwd, 'package.json');
  const text = await readFile(file, 'utf8').catch(() => '{}');
  const manifest = parseManifest(text);
  const { dependencies = {}, optionalDependencies = {} } = manifest;
  const needed = { ...dependencies, ...optionalDependencies };
  if (Object.keys(needed).length === 0) return;
  for (const [name, range] of Object.entries(needed)) requireByName(name, String(range));
  const modules = join(at.cwd, 'node_modules');
  // A shipped node_modules would be mixed with what npm installs.
  await rm(modules, { recursive: true, force: true });
  // What only the author's machine has would be asked for as well, though not installed.
  const { devDependencies: _dev, peerDependencies: _peer, ...toInstall } = manifest;
  await writeFile(file, JSON.stringify(toInstall));
  await runTool('npm', INSTALL, at).catch((error) => {
    throw asRefusal(error);
  });
  await writeFile(file, text);
  // Optional dependencies may all have failed.
  if (!existsSync(modules)) return;
  const lock = join(modules, '.package-lock.json');
  await requireFromRegistry(lock, at);
  await rm(lock);
}

/** Throws VALIDATION_ERROR. */
function parseManifest(text: string): Record<string, object | undefined> {
  let why = 'it is no object';
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

/** What npm would not take, or may not do for it (`toolLaunch`), it will not take another time either. */
function asRefusal(error: unknown): unknown {
  const said = messageOf(error);
  const why = said.includes('ERR_ACCESS_DENIED')
    ? 'npm would have to start a program for it, as for one from git'
    : /code EALLOW(?:GIT|REMOTE|FILE|DIRECTORY)\b/.test(said) && said;
  if (!why) return error;
  return new PlatformError(
    'VALIDATION_ERROR',
    `Among the plugin's dependencies is one that does not come from a registry (${why}); bundle it into the plugin.`,
    { cause: error },
  );
}

/** A package as npm wrote down that it installed it. */
interface Installed {
  /** Absent for what came inside another package, or was asked for by name and version alone. */
  resolved?: string;
  link?: boolean;
}

/**
 * What a plugin depends on may itself ask for anything, and a lock file or shrinkwrap, its own or a dependency's, may name
 * any place. Nothing of what npm fetched has run, so it is early enough to look at what it says it took.
 */
async function requireFromRegistry(lock: string, at: ToolPlace): Promise<void> {
  const { packages } = JSON.parse(await readFile(lock, 'utf8')) as { packages: Record<string, Installed> };
  const hosts = await registryHosts(at);
  for (const [path, { resolved, link = false }] of Object.entries(packages)) {
    if (!link && (resolved === undefined || hosts.includes(hostOf(resolved) ?? ''))) continue;
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    throw new PlatformError(
      'VALIDATION_ERROR',
      `Among the plugin's dependencies is ${name} from "${shown(resolved)}", which is no registry that npm is set to (${hosts.join(', ')}); bundle it into the plugin.`,
      { details: { dependency: name } },
    );
  }
}

async function registryHosts(at: ToolPlace): Promise<string[]> {
  const settings = await runTool('npm', ['config', 'list', '--long'], at);
  // The first is npm's own, also where another is set: what a lock file resolved there npm asks of that other one.
  const registries = [...settings.matchAll(REGISTRY_SETTING)].filter(
    ([, isReplaced], n) => n === 0 || !isReplaced,
  );
  return [...new Set(registries.flatMap(([, , url]) => hostOf(url!) ?? []))];
}

/** Undefined for what is not fetched by HTTP. */
function hostOf(address: string): string | undefined {
  return BY_ADDRESS.test(address) && URL.canParse(address) ? new URL(address).host : undefined;
}

/** An address without what may be secret in it. */
function shown(address = ''): string {
  if (!URL.canParse(address)) return address;
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname}`;
}
