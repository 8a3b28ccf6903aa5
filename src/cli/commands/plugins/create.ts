import { existsSync } from 'node:fs';
import { mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { z } from 'zod';
import { PluginId } from '../../../contracts/index.ts';
import { messageOf, PlatformError } from '../../../kit/errors.ts';
import { publicParts, version } from '../../../kit/paths.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { shellWord } from '../../shell-word.ts';
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
  summary: 'Make a new plugin whose tests pass',
  example: 'svc plugins create orders --template rest',
  args: z.object({
    name: PluginId.describe("the plugin's id"),
    template: z
      .enum(NAMES)
      .default('rest')
      .describe(`one of ${NAMES.join(', ')}`),
    folder: z.string().optional().describe('where to put it; default: plugins/<name>'),
  }),
  async run({ name, template, folder: given }, context) {
    const folder = resolve(context.cwd, given ?? join('plugins', name.split('/').at(-1)!));
    await requireEmpty(folder);
    const files = await writeWhole(folder, template, name);
    const at = shellWord(relative(context.cwd, folder) || '.');
    context.ui.note(`Next: (cd ${at} && npm test)\nThen, with the platform running: svc plugins dev ${at}`);
    return ok<Created>({ id: name, folder, template, files });
  },
  text: ({ id, folder, files }: Created, style) =>
    [`${style.green('created')} ${id} in ${folder}`, ...files.map((file) => `  ${file}`)].join('\n'),
});

/** What cannot be whole is taken away again: half a plugin would be a broken one of the project. Throws STORE_ERROR. */
async function writeWhole(folder: string, template: TemplateName, id: string): Promise<string[]> {
  let made: string | undefined;
  try {
    made = await mkdir(folder, { recursive: true });
    return await writePlugin(folder, template, id);
  } catch (error) {
    const inside = await readdir(folder).catch(() => []);
    const halves = made === undefined ? inside.map((name) => join(folder, name)) : [made];
    for (const path of halves) await rm(path, { recursive: true, force: true });
    throw new PlatformError(
      'STORE_ERROR',
      `The plugin cannot be written to ${folder}: ${messageOf(error)}.`,
      {
        details: { folder, hint: 'Choose another place with --folder.' },
        cause: error,
      },
    );
  }
}

/** Writes a template's files into a folder; resolves with their names. */
export async function writePlugin(folder: string, template: TemplateName, id: string): Promise<string[]> {
  const files = filesOf(template, id, version);
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
    details: { folder, hint: 'Choose another with --folder.' },
  });
}

/**
 * The platform that is here, so that tests run and editors know its types before anything is installed. Part by
 * part: a clone that is itself the project has the data folder beside them, which no plugin may see.
 */
async function linkPlatform(folder: string): Promise<void> {
  const target = join(folder, 'node_modules', 'svc-platform');
  await mkdir(target, { recursive: true });
  for (const part of publicParts) await symlink(part, join(target, basename(part)));
  // What `npm run validate` starts.
  const programs = join(folder, 'node_modules', '.bin');
  await mkdir(programs, { recursive: true });
  await symlink(join('..', 'svc-platform', 'bin', 'svc'), join(programs, 'svc'));
}
