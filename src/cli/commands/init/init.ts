import { resolve } from 'node:path';
import { z } from 'zod';
import { CONFIG_FILE } from '../../../kit/config/config.ts';
import { systemRandom } from '../../../kit/security/random.ts';
import { choose } from '../../confirm.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { pairs } from '../../table.ts';
import { EXAMPLES, type ExampleName } from './examples.ts';
import { nextSteps, productionSteps } from './next-steps.ts';
import { addSecrets, createProject, isProject, type ProjectFile, requireNoProject } from './project.ts';

const NAMES = EXAMPLES.map(({ value }) => value) as [ExampleName, ...ExampleName[]];

interface Initialized {
  folder: string;
  /** Id of the example plugin. Null if no plugin was created. */
  plugin: string | null;
  files: ProjectFile[];
  next: string[];
}

/** @spec docs/operations.md "A new project" */
export const init = defineCommand({
  name: 'init',
  summary: 'Create a project with config, secrets and an example plugin',
  example: 'svc init my-project --plugin github',
  args: z.object({
    folder: z.string().default('.').describe('project folder; default: current folder'),
    plugin: z
      .enum(NAMES)
      .optional()
      .describe(`example plugin: ${NAMES.join(', ')}; default: ask`),
    production: z
      .boolean()
      .default(false)
      .describe(
        'write the secrets required in production to .env; in an existing project, change nothing else',
      ),
    force: z.boolean().default(false).describe(`overwrite an existing ${CONFIG_FILE}`),
  }),
  positionals: ['folder'],
  async run({ folder: given, plugin: wanted, production, force }, context) {
    const { cwd, globals } = context;
    const folder = resolve(cwd, given);
    if (production && !force && isProject(folder)) {
      const files = addSecrets(folder, systemRandom());
      return ok<Initialized>({ folder, plugin: null, files, next: productionSteps() });
    }
    // An existing project is rejected before the prompt, because the answer would be useless.
    requireNoProject({ folder, force });
    const chosen =
      wanted ??
      (globals.yes ? NAMES[0] : await choose(context, 'Which plugin to start with?', EXAMPLES, '--plugin'));
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
