import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { z } from 'zod';
import { WorkflowId } from '../../../contracts/index.ts';
import { workflowFileStamps } from '../../../daemons/workflow/workflow-files.ts';
import { messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import { writeWholeFile } from '../../../supervisor/data-folder.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { shellWord } from '../../shell-word.ts';
import { schemaState, writeSchema } from '../../vendor/project-schemas.ts';
import { workflowText } from './template.ts';

interface CreatedWorkflow {
  id: string;
  file: string;
}

/**
 * Defines `svc workflows create`, which needs no running platform. @spec docs/workflows.md "Write and run a workflow"
 */
export const create = defineCommand({
  name: 'workflows create',
  summary: 'Create a workflow file with a schema for editors',
  example: 'svc workflows create nightly',
  args: z.object({
    id: WorkflowId.describe('workflow id'),
    file: z
      .string()
      .min(1)
      .optional()
      .describe('file to create; default: workflows/<id>.yaml in the project'),
  }),
  positionals: ['id'],
  async run({ id, file: given }, context) {
    const { projectDir, config } = context.platform();
    const file = given ? resolve(context.cwd, given) : join(projectDir, 'workflows', `${basename(id)}.yaml`);
    if (existsSync(file))
      throw new PlatformError('CONFLICT', `${file} already exists.`, {
        details: { file, hint: 'Choose another file with --file.' },
      });
    await writeWorkflow(id, projectDir, file);
    const found = await workflowFileStamps(projectDir, config.workflows);
    if (!found.has(file))
      context.ui.warn(
        `No pattern in "workflows" of svc.config.json matches ${file}: ${config.workflows.join(', ') || 'the list is empty'}.`,
      );
    const at = shellWord(relative(context.cwd, file));
    context.ui.note(
      `Next: svc workflows validate ${at}\nThen, with the platform running: svc workflows run ${shellWord(id)} --follow`,
    );
    return ok<CreatedWorkflow>({ id, file });
  },
  text: ({ id, file }: CreatedWorkflow, style) => `${style.green('created')} ${id} in ${file}`,
});

/**
 * Writes the workflow file. Also writes the JSON schema of workflows if the project lacks the schema. Throws
 * STORE_ERROR if writing fails.
 */
async function writeWorkflow(id: string, projectDir: string, file: string): Promise<void> {
  try {
    if (schemaState(projectDir, 'workflow.schema.json') === 'missing')
      writeSchema(projectDir, 'workflow.schema.json');
    await mkdir(dirname(file), { recursive: true });
    writeWholeFile(file, workflowText(id, projectDir, file), 0o644);
  } catch (error) {
    throw new PlatformError('STORE_ERROR', `Cannot write the workflow to ${file}: ${messageOf(error)}.`, {
      details: { file, hint: 'Choose another place with --file.' },
      cause: error,
    });
  }
}
