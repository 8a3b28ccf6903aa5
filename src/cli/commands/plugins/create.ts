import { join, relative, resolve } from 'node:path';
import { z } from 'zod';
import { PluginId } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { shellWord } from '../../shell-word.ts';
import { TEMPLATES, type TemplateName } from './templates/index.ts';
import { requireEmpty, writeOrRemove } from './write-plugin.ts';

const NAMES = Object.keys(TEMPLATES) as [TemplateName, ...TemplateName[]];

interface Created {
  id: string;
  folder: string;
  template: TemplateName;
  files: string[];
}

/** @spec docs/plugins.md "Your first plugin" */
export const create = defineCommand({
  name: 'plugins create',
  summary: 'Create a plugin from a template',
  example: 'svc plugins create orders --template rest',
  args: z.object({
    name: PluginId.describe('plugin id'),
    template: z
      .enum(NAMES)
      .default('rest')
      .describe(`one of ${NAMES.join(', ')}`),
    folder: z.string().optional().describe('folder of the plugin; default: plugins/<name>'),
  }),
  async run({ name, template, folder: given }, context) {
    const folder = resolve(context.cwd, given ?? join('plugins', name.split('/').at(-1)!));
    await requireEmpty(folder);
    const files = await writeOrRemove(folder, TEMPLATES[template](name), name);
    const at = shellWord(relative(context.cwd, folder) || '.');
    context.ui.note(`Next: (cd ${at} && npm test)\nThen, with the platform running: svc plugins dev ${at}`);
    return ok<Created>({ id: name, folder, template, files });
  },
  text: ({ id, folder, files }: Created, style) =>
    [`${style.green('created')} ${id} in ${folder}`, ...files.map((file) => `  ${file}`)].join('\n'),
});
