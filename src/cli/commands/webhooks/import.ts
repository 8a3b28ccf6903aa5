import { readFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { z } from 'zod';
import { PluginId } from '../../../contracts/index.ts';
import { messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { shellWord } from '../../shell-word.ts';
import { lineWidth, wrapProse } from '../../wrap.ts';
import { requireEmpty, writeOrRemove } from '../plugins/write-plugin.ts';
import { type Hook, parseHooks } from './imported-hooks/hooks-file.ts';
import { type ImportedHook, importHook } from './imported-hooks/imported-hook.ts';
import { pluginParts } from './imported-hooks/plugin-parts.ts';
import { NotCarriedOver } from './imported-hooks/rules.ts';

interface Imported {
  id: string;
  folder: string;
  webhooks: Array<{ event: string; hasSecret: boolean; notes: string[] }>;
  /** Hooks that have no equivalent, with the reason. */
  leftOut: Array<{ hook: string; reason: string }>;
  /** Commands that finish the import. */
  next: string[];
}

/** @spec docs/webhooks.md "Import hooks" */
export const importHooks = defineCommand({
  name: 'webhooks import',
  summary: 'Make a plugin of the hooks.json of a webhook server (adnanh/webhook)',
  example: 'svc webhooks import hooks.json --plugin deploys',
  args: z.object({
    file: z.string().describe('file of hooks, in JSON or YAML'),
    plugin: PluginId.default('imported-hooks' as PluginId).describe('id of the plugin'),
    folder: z.string().optional().describe('folder of the plugin; default: plugins/<id>'),
  }),
  positionals: ['file'],
  async run({ file, plugin, folder: given }, context) {
    const folder = resolve(context.cwd, given ?? join('plugins', plugin.split('/').at(-1)!));
    const { hooks, leftOut } = convert(parseHooks(await readHooks(resolve(context.cwd, file)), file));
    await requireEmpty(folder);
    await writeOrRemove(folder, pluginParts(hooks), plugin);
    const at = shellWord(relative(context.cwd, folder) || '.');
    // The platform loads the folders in `plugins` of its project by itself.
    const link = given === undefined ? [] : [`svc plugins link ${at}`];
    return ok<Imported>({
      id: plugin,
      folder,
      webhooks: hooks.map(({ id, secret, notes }) => ({ event: id, hasSecret: secret !== undefined, notes })),
      leftOut,
      next: [
        ...link,
        ...hooks.map(
          ({ id, secret }) =>
            `svc webhooks provision ${plugin} ${id} --namespace-in-url${secret === undefined ? '' : ' --secret-stdin'}`,
        ),
      ],
    });
  },
  text({ id, folder, webhooks, leftOut, next }: Imported, style) {
    const width = lineWidth(process.stdout);
    const note = (text: string) => wrapProse(`    - ${text}`, width);
    return [
      `${style.green('created')} ${id} in ${folder}`,
      ...webhooks.flatMap(({ event, notes }) => [`  ${event}`, ...notes.map(note)]),
      ...(leftOut.length > 0 ? [style.yellow('left out')] : []),
      ...leftOut.flatMap(({ hook, reason }) => [`  ${hook}`, note(reason)]),
      '',
      wrapProse(
        'The secrets that prove the senders are not copied. Pipe the secret of each hook into the command that provisions its webhook:',
        width,
      ),
      ...next.map((command) => `  ${command}`),
    ].join('\n');
  },
});

/** Throws VALIDATION_ERROR if no hook has an equivalent. */
function convert(hooks: readonly Hook[]): { hooks: ImportedHook[]; leftOut: Imported['leftOut'] } {
  const imported: ImportedHook[] = [];
  const leftOut: Imported['leftOut'] = [];
  for (const hook of hooks) {
    try {
      imported.push(importHook(hook));
    } catch (error) {
      if (!(error instanceof NotCarriedOver)) throw error;
      leftOut.push({ hook: hook.id, reason: error.message });
    }
  }
  if (imported.length > 0) return { hooks: imported, leftOut };
  const list = leftOut.map(({ hook, reason }) => `${hook}: ${reason}`).join('; ');
  throw new PlatformError('VALIDATION_ERROR', `No hook can be carried over. ${list}.`, {
    details: { leftOut },
  });
}

async function readHooks(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new PlatformError('NOT_FOUND', `Cannot read ${path}: ${messageOf(error)}.`, { details: { path } });
  }
}
