import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import {
  type LogRecord,
  linkPlugin,
  listPlugins,
  type ManifestV3,
  type PluginRecord,
  reloadPlugins,
} from '../../../contracts/index.ts';
import { watchSources } from '../../../daemons/plugin-runtime/source-watch.ts';
import { toPlatformError } from '../../../kit/errors/errors.ts';
import { silentLogger } from '../../../kit/telemetry/logger.ts';
import { sourceStamp } from '../../../plugins/index.ts';
import type { CommandContext } from '../../context.ts';
import { defineCommand, streamed } from '../../define-command.ts';
import { interruption } from '../../interruption.ts';
import { loadRecordFormat } from '../../log-format.ts';
import { checkFolder } from './check-folder.ts';
import { followFailures } from './plugin-failures.ts';

const KEEP_ALIVE_MS = 60_000;

/** Defines `svc plugins dev`, which runs until it is interrupted. @spec docs/plugins.md "Developing" */
export const dev = defineCommand({
  name: 'plugins dev',
  summary: 'Link a folder, reload it on changes and show failing calls',
  example: 'svc plugins dev ./my-plugin',
  streams: 'always',
  args: z.object({ folder: z.string().default('.').describe('plugin folder; default: current folder') }),
  positionals: ['folder'],
  async run({ folder: given }, context) {
    const folder = resolve(context.cwd, given);
    const known = await knownAt(folder, context);
    const { id } = known ?? (await context.client.call(linkPlugin, { body: { folder } }));
    // A loaded plugin is reloaded, because the services might have loaded older files of the folder.
    let manifest = known
      ? await reload(folder, context)
      : (await checkFolder(folder, context)).plugin?.manifest;
    const how = known?.origin === 'project' ? 'is part of the project' : 'is linked';
    const { signal, exitCode } = interruption();
    await followFailures(id, context, signal, await failureView(context));
    context.ui.note(`${id} ${how}; watching ${folder}`);
    const stamp = () => sourceStamp(folder, manifest);
    await watchFolder(folder, stamp, signal, async () => {
      manifest = (await reload(folder, context)) ?? manifest;
    });
    return streamed(exitCode());
  },
});

/** Returns the loaded plugin of this folder, which is either a linked plugin or a project plugin. */
async function knownAt(folder: string, { client }: CommandContext): Promise<PluginRecord | undefined> {
  const { items } = await client.call(listPlugins);
  return items.find(({ root, origin }) => root === folder && origin !== 'installed');
}

async function failureView({ ui, globals, clock }: CommandContext): Promise<(log: LogRecord) => void> {
  if (globals.json) return (log) => ui.line(JSON.stringify({ at: new Date(clock.now()).toISOString(), log }));
  const format = await loadRecordFormat(ui.out);
  return (log) => ui.line(format(JSON.stringify(log)));
}

/**
 * Reloads the plugin and returns its manifest. If the reload fails, prints the problems and returns undefined. The
 * loaded version then keeps running.
 */
async function reload(folder: string, context: CommandContext): Promise<ManifestV3 | undefined> {
  const output = (fields: object) =>
    JSON.stringify({ at: new Date(context.clock.now()).toISOString(), ...fields });
  const { json } = context.globals;
  const refused = (faults: PluginRecord['faults']): undefined => {
    const lines = faults
      .map(({ path, message }) => `  ${path === '' ? '' : `${path}: `}${message}`)
      .join('\n');
    context.ui.line(json ? output({ reloaded: false, faults }) : `not reloaded:\n${lines}`);
  };
  try {
    if (!existsSync(folder)) {
      const message = `${folder} does not exist. The loaded version keeps running until the folder is back.`;
      return refused([{ code: 'INVALID_MANIFEST', path: '', message }]);
    }
    const { plugin, faults } = await checkFolder(folder, context);
    if (!plugin || faults.length > 0) return refused(faults);
    const { revision } = await context.client.call(reloadPlugins);
    // The services can reject a valid plugin that conflicts with another plugin.
    const record = await knownAt(folder, context);
    if (record?.status === 'broken') return refused(record.faults);
    context.ui.line(
      json ? output({ reloaded: true, id: plugin.id, revision }) : `reloaded ${plugin.id} ${plugin.version}`,
    );
    return plugin.manifest;
  } catch (error) {
    const { code, message } = toPlatformError(error);
    context.ui.line(
      json ? output({ reloaded: false, error: { code, message } }) : `not reloaded: ${message}`,
    );
    return undefined;
  }
}

/**
 * Calls `changed` after each burst of file changes until `signal` aborts. Calls never overlap. The path is polled to
 * detect a folder that was removed and created again, for example by `git checkout`.
 */
async function watchFolder(
  folder: string,
  stamp: () => string,
  signal: AbortSignal,
  changed: () => Promise<void>,
): Promise<void> {
  const watch = await watchSources({
    stamp: async () => new Map([[folder, stamp()]]),
    changed,
    logger: silentLogger,
  });
  // Keeps the process alive. The timers of the watcher do not keep a process alive.
  const alive = setInterval(() => {}, KEEP_ALIVE_MS);
  await new Promise<void>((stop) => signal.addEventListener('abort', () => stop(), { once: true }));
  clearInterval(alive);
  watch.close();
  await watch.check();
}
