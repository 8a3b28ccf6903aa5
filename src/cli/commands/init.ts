import { resolve } from 'node:path';
import { z } from 'zod';
import { CONFIG_FILE } from '../../kit/config.ts';
import { systemRandom } from '../../kit/random.ts';
import { choose } from '../confirm.ts';
import { defineCommand, ok } from '../define-command.ts';
import { pairs } from '../style.ts';
import { EXAMPLES, type ExampleName } from './init/examples.ts';
import { nextSteps, productionSteps } from './init/next-steps.ts';
import { addSecrets, createProject, isProject, type ProjectFile, requireNoProject } from './init/project.ts';

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
    production: z
      .boolean()
      .default(false)
      .describe('write the secrets that production needs to .env; a project that is there keeps all else'),
    force: z.boolean().default(false).describe(`write ${CONFIG_FILE} anew where there is one already`),
  }),
  positionals: ['folder'],
  async run({ folder: given, plugin: wanted, production, force }, context) {
    const { cwd, globals } = context;
    const folder = resolve(cwd, given);
    if (production && !force && isProject(folder)) {
      const files = addSecrets(folder, systemRandom());
      return ok<Initialized>({ folder, plugin: null, files, next: productionSteps() });
    }
    // Before anything is asked.
    requireNoProject({ folder, force });
    const chosen =
      wanted ??
      (globals.yes ? NAMES[0] : await choose(context, 'Which plugin to begin with?', EXAMPLES, '--plugin'));
    const { files, plugin } = await createProject({ folder, example: chosen, force, random: systemRandom() });
    const next = production ? productionSteps() : nextSteps(given, chosen);
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
