import { existsSync } from 'node:fs';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { z } from 'zod';
import { PluginId } from '../../../contracts/index.ts';
import { messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import { version } from '../../../kit/files/paths.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { shellWord } from '../../shell-word.ts';
import { linkPlatform } from '../../vendor/link-platform.ts';
import { vendoredDependency, vendorFolderOf, vendorPlatform } from '../../vendor/vendored-platform.ts';
import { filesOf, TEMPLATES, type TemplateName } from './templates/index.ts';

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
    const files = await writeOrRemove(folder, template, name);
    const at = shellWord(relative(context.cwd, folder) || '.');
    context.ui.note(`Next: (cd ${at} && npm test)\nThen, with the platform running: svc plugins dev ${at}`);
    return ok<Created>({ id: name, folder, template, files });
  },
  text: ({ id, folder, files }: Created, style) =>
    [`${style.green('created')} ${id} in ${folder}`, ...files.map((file) => `  ${file}`)].join('\n'),
});

/**
 * Writes the files of a plugin. Removes the written files on failure, because an incomplete plugin would break the
 * project. Throws STORE_ERROR if writing fails.
 */
async function writeOrRemove(folder: string, template: TemplateName, id: string): Promise<string[]> {
  let created: string | undefined;
  try {
    created = await mkdir(folder, { recursive: true });
    return await writePlugin(folder, template, id);
  } catch (error) {
    const inside = await readdir(folder).catch(() => []);
    const partial = created === undefined ? inside.map((name) => join(folder, name)) : [created];
    for (const path of partial) await rm(path, { recursive: true, force: true });
    throw new PlatformError('STORE_ERROR', `Cannot write the plugin to ${folder}: ${messageOf(error)}.`, {
      details: { folder, hint: 'Choose another place with --folder.' },
      cause: error,
    });
  }
}

/** Writes the files of a template into a folder, and the platform archive into `vendor`. Returns the file names. */
export async function writePlugin(
  folder: string,
  template: TemplateName,
  id: string,
  vendor: string = vendorFolderOf(folder),
): Promise<string[]> {
  await vendorPlatform(vendor);
  const files = filesOf(template, id, { version, dependency: vendoredDependency(folder, vendor) });
  for (const [file, content] of Object.entries(files)) {
    const path = join(folder, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content, { flag: 'wx' });
  }
  await linkPlatform(folder);
  return Object.keys(files);
}

async function requireEmpty(folder: string): Promise<void> {
  if (!existsSync(folder) || (await readdir(folder)).length === 0) return;
  throw new PlatformError('CONFLICT', `${folder} exists and is not empty.`, {
    details: { folder, hint: 'Choose another folder with --folder.' },
  });
}
