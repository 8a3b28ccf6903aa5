import { resolve } from 'node:path';
import { z } from 'zod';
import { CONFIG_FILE } from '../../kit/config.ts';
import { systemRandom } from '../../kit/random.ts';
import { choose } from '../confirm.ts';
import { defineCommand, ok } from '../define-command.ts';
import { pairs } from '../style.ts';
import { EXAMPLES, type ExampleName } from './init/examples.ts';
import { nextSteps } from './init/next-steps.ts';
import { createProject, type ProjectFile, requireNoProject } from './init/project.ts';

const NAMES = EXAMPLES.map(({ value }) => value) as [ExampleName, ...ExampleName[]];

interface Initialized {
  folder: string;
  /** Null: none was wanted. */
  plugin: string | null;
  files: ProjectFile[];
  next: string[];
}

/** @spec docs/operations.md "A new project" */
export const init = defineCommand({
  name: 'init',
  summary: 'Make a project: config, secrets, an example plugin',
  example: 'svc init my-project --plugin github',
  args: z.object({
    folder: z.string().default('.').describe('where; default: this folder'),
    plugin: z
      .enum(NAMES)
      .optional()
      .describe(`the example plugin: ${NAMES.join(', ')}; default: asks`),
    force: z.boolean().default(false).describe(`write ${CONFIG_FILE} anew where there is one already`),
  }),
  positionals: ['folder'],
  async run({ folder: given, plugin: wanted, force }, context) {
    const { cwd, globals } = context;
    const folder = resolve(cwd, given);
    // Before anything is asked.
    requireNoProject({ folder, force });
    const chosen =
      wanted ??
      (globals.yes ? NAMES[0] : await choose(context, 'Which plugin to begin with?', EXAMPLES, '--plugin'));
    const { files, plugin } = await createProject({ folder, example: chosen, force, random: systemRandom() });
    const next = nextSteps(given, chosen);
    return ok<Initialized>({ folder, plugin, files, next });
  },
  text: ({ folder, files, next }: Initialized, style) =>
    [
      `${style.green('✓')} ${folder} is ready.`,
      pairs(
        files.map(({ path, action }) => [action, path]),
        style,
      ),
      '',
      'Next:',
      ...next.map((line) => `  ${line}`),
    ].join('\n'),
});
