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
import { toPlatformError } from '../../../kit/errors.ts';
import { silentLogger } from '../../../kit/logger.ts';
import { sourceStamp } from '../../../plugins/index.ts';
import type { CommandContext } from '../../context.ts';
import { defineCommand, streamed } from '../../define-command.ts';
import { interruption } from '../../interruption.ts';
import { formatRecord } from '../../log-format.ts';
import { checkFolder } from './check-folder.ts';
import { followFailures } from './plugin-failures.ts';

const KEEP_ALIVE_MS = 60_000;

/** Runs until it is interrupted. @spec docs/plugins.md "Developing" */
export const dev = defineCommand({
  name: 'plugins dev',
  summary: 'Link a folder, have the services read it anew when it changes, and show failing calls',
  example: 'svc plugins dev ./my-plugin',
  streams: 'always',
  args: z.object({ folder: z.string().default('.').describe("the plugin's folder; default: this one") }),
  positionals: ['folder'],
  async run({ folder: given }, context) {
    const folder = resolve(context.cwd, given);
    const known = await knownAt(folder, context);
    const { id } = known ?? (await context.client.call(linkPlugin, { body: { folder } }));
    // What the services have read of it, if anything, is as old as their last look.
    let manifest = known
      ? await reload(folder, context)
      : (await checkFolder(folder, context)).plugin?.manifest;
    const how = known?.origin === 'project' ? 'lies in the project' : 'is linked';
    const { signal, exitCode } = interruption();
    await followFailures(id, context, signal, (record) => showFailure(record, context));
    context.ui.note(`${id} ${how}; waiting for changes in ${folder}`);
    const stamp = () => sourceStamp(folder, manifest);
    await watchFolder(folder, stamp, signal, async () => {
      manifest = (await reload(folder, context)) ?? manifest;
    });
    return streamed(exitCode());
  },
});

/** The plugin that is read from this folder already: linked, or one of the project's own. */
async function knownAt(folder: string, { client }: CommandContext): Promise<PluginRecord | undefined> {
  const { items } = await client.call(listPlugins);
  return items.find(({ root, origin }) => root === folder && origin !== 'installed');
}

function showFailure(record: LogRecord, { ui, globals, clock }: CommandContext): void {
  const at = new Date(clock.now()).toISOString();
  const line = JSON.stringify(record);
  ui.line(globals.json ? JSON.stringify({ at, log: record }) : formatRecord(line, ui.out));
}

/** A folder that is broken for a moment is told, and what ran before goes on. Returns the manifest of a sound one. */
async function reload(folder: string, context: CommandContext): Promise<ManifestV3 | undefined> {
  const told = (fields: object) =>
    JSON.stringify({ at: new Date(context.clock.now()).toISOString(), ...fields });
  const { json } = context.globals;
  const refused = (faults: PluginRecord['faults']): undefined => {
    const lines = faults
      .map(({ path, message }) => `  ${path === '' ? '' : `${path}: `}${message}`)
      .join('\n');
    context.ui.line(json ? told({ reloaded: false, faults }) : `not reloaded:\n${lines}`);
  };
  try {
    if (!existsSync(folder)) {
      const message = `${folder} is gone; what ran of it runs on. Waiting for it to come back.`;
      return refused([{ code: 'INVALID_MANIFEST', path: '', message }]);
    }
    const { plugin, faults } = await checkFolder(folder, context);
    if (!plugin || faults.length > 0) return refused(faults);
    const { revision } = await context.client.call(reloadPlugins);
    // Good by itself, it may still clash with another plugin.
    const record = await knownAt(folder, context);
    if (record?.status === 'broken') return refused(record.faults);
    context.ui.line(
      json ? told({ reloaded: true, id: plugin.id, revision }) : `reloaded ${plugin.id} ${plugin.version}`,
    );
    return plugin.manifest;
  } catch (error) {
    const { code, message } = toPlatformError(error);
    context.ui.line(json ? told({ reloaded: false, error: { code, message } }) : `not reloaded: ${message}`);
    return undefined;
  }
}

/**
 * Calls `changed` after each burst of changes, never twice at once; resolves when interrupted. The folder is polled by its
 * path, so that one that is moved away, or replaced by a checkout of another branch, is watched again once it is back.
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
  // The timers of the watch keep no process alive.
  const alive = setInterval(() => {}, KEEP_ALIVE_MS);
  await new Promise<void>((stop) => signal.addEventListener('abort', () => stop(), { once: true }));
  clearInterval(alive);
  watch.close();
  await watch.check();
}
