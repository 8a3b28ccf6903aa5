import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { compileDefinition } from '../../../daemons/workflow/domain/definition/compile-definition.ts';
import type { CompiledWorkflow } from '../../../daemons/workflow/domain/definition/compiled-workflow.ts';
import { invalidDefinition } from '../../../daemons/workflow/domain/definition/definition-faults.ts';
import { hasScripts, scriptIssues } from '../../../daemons/workflow/domain/definition/scripts.ts';
import { checkingKinds } from '../../../daemons/workflow/step-kinds.ts';
import type { LoadedConfig } from '../../../kit/config/config.ts';
import { messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import { requireScriptSandbox } from '../../../plugins/scripts/script-sandbox.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { readDefinitionFile } from '../../definition-file.ts';

interface ValidWorkflow {
  file: string;
  id: string;
  version: string;
  jobs: string[];
}

/**
 * Defines `svc workflows validate`, which needs no running platform. @spec docs/workflows.md "Write and run a workflow"
 */
export const validate = defineCommand({
  name: 'workflows validate',
  summary: 'Check a workflow file and list all problems with their lines',
  example: 'svc workflows validate workflows/nightly.yaml',
  args: z.object({ file: z.string().min(1).describe('a .yaml, .yml or .json file') }),
  async run({ file }, { cwd, platform }) {
    const path = resolve(cwd, file);
    if (!existsSync(path))
      throw new PlatformError('VALIDATION_ERROR', `${path} does not exist.`, { details: { file: path } });
    const { definition, withPositions } = await readDefinitionFile(path, file);
    try {
      const workflow = compileDefinition(definition, checkingKinds());
      if (hasScripts(workflow)) await requireSandbox(workflow, definition, platform());
      const { id, version, jobs } = workflow.definition;
      return ok<ValidWorkflow>({ file: path, id, version, jobs: Object.keys(jobs) });
    } catch (error) {
      throw withPositions(error);
    }
  },
  text: ({ id, version, jobs }: ValidWorkflow, style) =>
    `${style.green('valid')} ${id} ${version}: ${jobs.join(', ')}`,
});

/** Throws VALIDATION_ERROR with each script of the definition if this machine cannot confine scripts. */
async function requireSandbox(
  workflow: CompiledWorkflow,
  written: unknown,
  project: LoadedConfig,
): Promise<void> {
  try {
    await requireScriptSandbox(project);
  } catch (error) {
    throw invalidDefinition(scriptIssues(workflow, messageOf(error)), written);
  }
}
