import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { copyFolder } from './copy-folder.ts';
import { installDependencies, NPM_QUIET } from './install-dependencies.ts';
import { type McpPluginParts, writeMcpPlugin } from './mcp-plugin.ts';
import type { Source } from './parse-source.ts';
import { runTool, type ToolPlace } from './run-tool.ts';
import { unpackTarball } from './tar.ts';

/**
 * Settings files of npm. These files are not copied, because the settings could select registries and programs to run.
 */
const NPM_SETTINGS = new Set(['.npmrc', 'npmrc']);
const NOT_COPIED = new Set([...NPM_SETTINGS, '.git', 'node_modules', '.svc']);

/**
 * Fetches a source and its dependencies into the new `folder`, without running scripts. Resolves with the exact
 * version. Throws VALIDATION_ERROR for an unacceptable source or dependency, and UPSTREAM_UNAVAILABLE if npm or git
 * fails.
 */
export async function fetchSource(
  source: Source,
  folder: string,
  at: ToolPlace,
  mcp: McpPluginParts,
): Promise<string> {
  if (source.kind === 'mcp') return writeMcpPlugin(source.server, folder, at, mcp);
  const resolved = await bring(source, folder, at);
  await installDependencies({ ...at, cwd: folder });
  return resolved;
}

async function bring(
  source: Exclude<Source, { kind: 'mcp' }>,
  folder: string,
  at: ToolPlace,
): Promise<string> {
  await mkdir(folder, { recursive: true });
  switch (source.kind) {
    case 'folder':
      await copyFolder(source.path, folder, NOT_COPIED);
      return source.path;
    case 'tarball':
      await unpackTarball(source.path, folder, NPM_SETTINGS);
      return source.path;
    case 'npm':
      return fromRegistry(source.spec, folder, at);
    case 'git':
      return fromGit(source.url, source.ref, folder, at);
  }
}

async function fromRegistry(spec: string, folder: string, at: ToolPlace): Promise<string> {
  const packed = join(at.cwd, 'packed');
  await mkdir(packed);
  const output = await runTool(
    'npm',
    ['pack', '--json', '--pack-destination', packed, ...NPM_QUIET, '--', spec],
    at,
  );
  const archive = (await readdir(packed)).find((name) => name.endsWith('.tgz'));
  if (!archive) throw new PlatformError('UPSTREAM_UNAVAILABLE', `npm packed nothing for ${spec}.`);
  await unpackTarball(join(packed, archive), folder, NPM_SETTINGS);
  return describePacked(output) ?? spec;
}

/** Returns name, version and integrity of the packed package, such as `@acme/orders@1.2.3 sha512-…`. */
function describePacked(output: string): string | undefined {
  try {
    const told = JSON.parse(output) as unknown;
    const [first] = Array.isArray(told) ? told : Object.values(told as object);
    const { id, integrity } = first as { id?: unknown; integrity?: unknown };
    return typeof id === 'string'
      ? [id, integrity].filter((part) => typeof part === 'string').join(' ')
      : undefined;
  } catch {
    return undefined;
  }
}

async function fromGit(url: string, ref: string | null, folder: string, at: ToolPlace): Promise<string> {
  const clone = join(at.cwd, 'clone');
  const inClone = { ...at, cwd: clone };
  // Disables git hooks, symbolic links and the `ext` protocol, with which a URL could run a program.
  const safe = [
    '-c',
    'core.hooksPath=/dev/null',
    '-c',
    'protocol.ext.allow=never',
    '-c',
    'core.symlinks=false',
  ];
  const isCommit = ref !== null && /^[0-9a-f]{7,40}$/.test(ref);
  const branch = ref !== null && !isCommit ? ['--branch', ref] : [];
  const depth = isCommit ? [] : ['--depth', '1'];
  await runTool('git', [...safe, 'clone', '--quiet', '--no-tags', ...depth, ...branch, '--', url, clone], at);
  if (isCommit) await runTool('git', [...safe, 'checkout', '--quiet', '--detach', ref], inClone);
  const commit = (await runTool('git', ['rev-parse', 'HEAD'], inClone)).trim();
  await copyFolder(clone, folder, NOT_COPIED);
  return `${url}#${commit}`;
}
