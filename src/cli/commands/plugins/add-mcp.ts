import { z } from 'zod';
import {
  installPlugin,
  McpPluginSource,
  mcpPluginId,
  mcpSourceText,
  PluginId,
  planPlugin,
} from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { confirmPlan, INSTALL_TIMEOUT_MS } from './install-plan.ts';
import { pluginText } from './show.ts';

const texts = z.array(z.string().min(1)).default([]);

/** @spec docs/mcp-servers.md */
export const addMcp = defineCommand({
  name: 'plugins add-mcp',
  summary: 'Wrap an MCP server as a confined plugin, after showing its tools',
  example: 'svc plugins add-mcp @modelcontextprotocol/server-everything --expose',
  args: z.object({
    server: z.string().min(1).describe('npm package with an optional version, or URL'),
    name: PluginId.optional().describe('plugin id; default: from the package or URL'),
    allowNetwork: texts.describe('host that the server may reach; repeatable'),
    allowRead: texts.describe('folder that it may read; repeatable'),
    allowWrite: texts.describe('folder that it may write; repeatable'),
    arg: texts.describe('argument of the program; repeatable'),
    env: texts.describe('NAME=value, a variable of the program; repeatable'),
    secret: texts.describe('NAME, or NAME=SECRET: variable or header from a secret; repeatable'),
    bin: z.string().optional().describe('program, if the package has several'),
    expose: z.boolean().default(false).describe('offer the tools to agents at /mcp'),
  }),
  async run({ server, name, ...flags }, context) {
    const source = mcpSourceText(sourceOf(server, name, flags));
    const options = { timeoutMs: INSTALL_TIMEOUT_MS };
    context.ui.note(`Starting ${server} in the sandbox to list its tools …`);
    const plan = await context.client.call(planPlugin, { body: { source } }, options);
    if (plan.installed !== null)
      throw new PlatformError('PLUGIN_CONFLICT', `Plugin ${plan.id} is already installed.`, {
        details: {
          pluginId: plan.id,
          hint: `svc plugins accept-mcp ${plan.id} accepts changed tools of an MCP server. For other flags, uninstall it first. For another plugin, pass --name <id>.`,
        },
      });
    await confirmPlan(plan, context);
    const body = { source, manifestDigest: plan.manifestDigest };
    return ok(await context.client.call(installPlugin, { body }, options));
  },
  text: pluginText,
});

interface Flags {
  allowNetwork: string[];
  allowRead: string[];
  allowWrite: string[];
  arg: string[];
  env: string[];
  secret: string[];
  bin?: string | undefined;
  expose: boolean;
}

/** Flag of each field of a source. */
const FLAGS: Readonly<Record<string, string>> = {
  ...{ id: '--name', url: 'the URL', package: 'the package', range: 'the version after @', bin: '--bin' },
  ...{ args: '--arg', network: '--allow-network', read: '--allow-read', write: '--allow-write' },
  ...{ env: '--env', secrets: '--secret' },
};

function sourceOf(server: string, name: string | undefined, flags: Flags): McpPluginSource {
  const isUrl = /^https?:\/\//.test(server);
  if (isUrl && (flags.arg.length > 0 || flags.env.length > 0 || flags.bin !== undefined))
    throw new UsageError('--arg, --env and --bin are for npm packages.', {
      hint: 'A server with a URL takes headers from secrets: --secret NAME=SECRET',
    });
  const at = isUrl ? -1 : server.indexOf('@', 1);
  const packageName = at === -1 ? server : server.slice(0, at);
  const parsed = McpPluginSource.safeParse({
    id: name ?? mcpPluginId(isUrl ? server : packageName),
    ...(isUrl
      ? { url: server }
      : { package: packageName, ...(at === -1 ? {} : { range: server.slice(at + 1) }) }),
    ...(flags.bin === undefined ? {} : { bin: flags.bin }),
    ...{ args: flags.arg, network: flags.allowNetwork, read: flags.allowRead, write: flags.allowWrite },
    env: Object.fromEntries(flags.env.map((flag) => pairOf(flag, '--env'))),
    secrets: Object.fromEntries(flags.secret.map((flag) => pairOf(flag, '--secret', true))),
    expose: flags.expose,
  });
  if (parsed.success) return parsed.data;
  const [{ path, message }] = parsed.error.issues as [(typeof parsed.error.issues)[number]];
  const [key, ...rest] = path;
  const flag = key === undefined ? server : (FLAGS[String(key)] ?? String(key));
  throw new UsageError(`${[flag, ...rest].join(' ')}: ${message}.`);
}

/** Splits `NAME=value`. The value is the name itself if that is allowed and the flag has no `=`. */
function pairOf(text: string, flag: string, mayBeName = false): [name: string, value: string] {
  const at = text.indexOf('=');
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  if (at === -1 && mayBeName) return [text, text];
  throw new UsageError(`${flag} ${text}: must be <NAME>=<value>.`);
}
