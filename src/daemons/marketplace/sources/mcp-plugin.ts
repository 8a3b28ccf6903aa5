import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import semver from 'semver';
import {
  type ListedMcpTool,
  MANIFEST_FILE,
  type McpPluginSource,
  type McpServer,
  type McpTool,
  mcpCommandId,
  Permissions,
} from '../../../contracts/index.ts';
import { isRecord } from '../../../kit/data/is-record.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { type DescribedPlugin, portableSchema, readPackageJson, toolDigest } from '../../../plugins/index.ts';
import { copyFolder } from './copy-folder.ts';
import { installDependencies } from './install-dependencies.ts';
import type { ToolPlace } from './run-tool.ts';

/** Time limit of a call of a tool. */
const CALL_MS = 60_000;
const MAX_TOOL_NAME_CHARS = 48;
const MAX_SHOWN_CHARS = 2000;
const MAX_TITLE_CHARS = 100;
const HASH_CHARS = 8;

export interface McpPluginParts {
  /** Starts the server in the sandbox and lists its tools. */
  list(plugin: DescribedPlugin, permissions: Permissions): Promise<ListedMcpTool[]>;
  /** Folder of the installed plugin, whose code is kept. Without it, the package is fetched. */
  keep?: string | undefined;
}

/**
 * Writes the plugin that wraps an MCP server: its package, the approved tools in the manifest, and one command for each.
 * Resolves with the exact version of the package, or the URL.
 */
export async function writeMcpPlugin(
  source: McpPluginSource,
  folder: string,
  at: ToolPlace,
  { list, keep }: McpPluginParts,
): Promise<string> {
  await mkdir(folder, { recursive: true });
  if (keep !== undefined) await copyFolder(keep, folder, new Set([MANIFEST_FILE, 'tools', 'index.js']));
  else if (source.package !== undefined) await fetchPackage(source, folder, at);
  const program = source.package === undefined ? undefined : await programOf(source, folder);
  const { id, args, env, secrets, url, package: name, bin } = source;
  const server = {
    ...(url === undefined ? { package: name, ...program, ...(bin ? { bin } : {}), args, env } : { url }),
    secrets,
  };
  const version = semver.valid(program?.version) ?? '1.0.0';
  const permissions = permissionsOf(source);
  const manifest = { schema: 'svc.plugin/3', id, version, permissions };
  const write = (rest: object) =>
    writeFile(join(folder, MANIFEST_FILE), `${JSON.stringify({ ...manifest, ...rest }, null, 2)}\n`);
  await write({ mcpServer: { ...server, tools: [] } });
  const listed = await list({ id, version, root: folder }, Permissions.parse(permissions));
  const tools = listed.map((tool): McpTool => ({ ...tool, digest: toolDigest(tool) }));
  const commands = commandsOf(source, tools);
  await writeCode(folder, tools, commands);
  await write({ commands, mcpServer: { ...server, tools } });
  return url ?? `${name}@${program!.version}`;
}

async function fetchPackage(source: McpPluginSource, folder: string, at: ToolPlace): Promise<void> {
  const file = join(folder, 'package.json');
  const write = (range: string) =>
    writeFile(
      file,
      JSON.stringify({
        name: source.id,
        version: '1.0.0',
        private: true,
        type: 'module',
        dependencies: { [source.package!]: range },
      }),
    );
  await write(source.range ?? 'latest');
  await installDependencies({ ...at, cwd: folder }, { keepsLock: true });
  await write((await packageOf(source, folder)).version);
}

async function packageOf(source: McpPluginSource, folder: string) {
  const found = await readPackageJson(join(folder, 'node_modules', source.package!));
  const { version, bin, name } = (found ?? {}) as { version?: unknown; bin?: unknown; name?: unknown };
  if (typeof version === 'string' && semver.valid(version)) return { version, bin, name };
  throw refused(source, 'it was not installed for this system, or has no version');
}

/** Finds the program of the package. Only programs for Node can run in the sandbox of plugins. */
async function programOf(
  source: McpPluginSource,
  folder: string,
): Promise<Pick<McpServer, 'version' | 'entry'>> {
  const { version, bin } = await packageOf(source, folder);
  const short = source.package!.slice(source.package!.lastIndexOf('/') + 1);
  const programs: Record<string, unknown> =
    typeof bin === 'string' ? { [short]: bin } : isRecord(bin) ? bin : {};
  const names = Object.keys(programs);
  const wanted = source.bin ?? (names.length === 1 ? names[0]! : short);
  if (!Object.hasOwn(programs, wanted))
    throw refused(
      source,
      names.length === 0
        ? 'it has no program ("bin")'
        : `it has the programs ${names.slice(0, 20).join(', ')}: choose one with --bin`,
    );
  const entry = posix.join('node_modules', source.package!, posix.join('/', String(programs[wanted])));
  const path = join(folder, entry);
  const text = existsSync(path) ? await readFile(path, 'utf8') : '';
  const runsOnNode = text.startsWith('#!') ? /^#!.*\bnode\b/.test(text) : /\.[cm]?js$/.test(entry);
  if (text === '' || !runsOnNode) throw refused(source, `its program ${entry} does not run on Node`);
  return { version, entry };
}

function permissionsOf({ url, network, secrets, read, write }: McpPluginSource) {
  const own = url === undefined ? [] : [new URL(url).host];
  return {
    network: [...new Set([...own, ...network])],
    secrets: [...new Set(Object.values(secrets))],
    ...(read.length + write.length > 0 ? { fs: { read, write } } : {}),
    platform: { state: false, cache: false, ...(url === undefined ? { childProcess: 'sandboxed' } : {}) },
  };
}

/** Returns a command for each tool. Throws CONFLICT if two tools get the same name. */
function commandsOf({ id, expose }: McpPluginSource, tools: readonly McpTool[]) {
  const taken = new Map<string, string>();
  return tools.map(({ name, title, description, annotations = {} }, index) => {
    const command = mcpCommandId(id, name);
    const other = taken.get(command);
    if (other !== undefined || command.length > 128)
      throw new PlatformError(
        'CONFLICT',
        other === undefined
          ? `The tool "${name}" would become a command of more than 128 characters. Choose a shorter --name.`
          : `The tools "${other}" and "${name}" would both become the command "${command}".`,
        { details: { tools: [other ?? name, name], command } },
      );
    taken.set(command, name);
    const shown = description?.trim().slice(0, MAX_SHOWN_CHARS) || `The tool ${name}.`;
    return {
      id: command,
      handler: `index.js#tool${index}`,
      description: shown,
      input: { $ref: `tools/${index}.json` },
      timeoutMs: CALL_MS,
      ...(expose
        ? {
            mcp: {
              expose: true,
              name: shortName(command),
              ...(title?.trim() ? { title: title.trim().slice(0, MAX_TITLE_CHARS) } : {}),
              description: shown,
              // A hint of the server cannot lower the role: readers do not call tools of others.
              destructive: annotations.destructiveHint !== false && annotations.readOnlyHint !== true,
            },
          }
        : {}),
    };
  });
}

/** Shortens the name of a tool for agents to 48 characters, by a hash of the whole name. */
function shortName(command: string): string {
  const name = command.replace(/[^a-z0-9_-]/g, '_');
  if (name.length <= MAX_TOOL_NAME_CHARS) return name;
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH_CHARS);
  return `${name.slice(0, MAX_TOOL_NAME_CHARS - HASH_CHARS - 1)}_${hash}`;
}

async function writeCode(
  folder: string,
  tools: readonly McpTool[],
  commands: readonly unknown[],
): Promise<void> {
  await mkdir(join(folder, 'tools'), { recursive: true });
  const lines = tools.map(
    ({ name }, index) =>
      `export const tool${index} = { kind: 'command', mcpTool: ${JSON.stringify(name)}, execute() {} };\n`,
  );
  const head = '// Written by `svc plugins add-mcp`. The platform calls the tools of svc.plugin.json.\n';
  await writeFile(join(folder, 'index.js'), head + lines.join(''));
  for (const index of commands.keys())
    await writeFile(
      join(folder, 'tools', `${index}.json`),
      `${JSON.stringify(portableSchema(tools[index]!.inputSchema), null, 2)}\n`,
    );
}

function refused({ package: name }: McpPluginSource, why: string): PlatformError {
  return new PlatformError('VALIDATION_ERROR', `The package ${name} cannot be wrapped: ${why}.`, {
    details: { package: name },
  });
}
