import { WorkflowDefinition } from '../../../../contracts/index.ts';
import { MOST_STEPS } from '../run/run-parts.ts';
import { compileCommon, pinned } from './compile-common.ts';
import { compileJobs } from './compile-jobs.ts';
import { names } from './compile-names.ts';
import type { CompiledWorkflow, KindOf } from './compiled-workflow.ts';
import { invalidDefinition } from './definition-faults.ts';
import { compileTemplate, type DefinitionIssue, type Path } from './templates.ts';

/** Compiles a definition as written. Throws VALIDATION_ERROR with every fault and its place in `details.issues`. */
export function compileDefinition(written: unknown, kindOf: KindOf): CompiledWorkflow {
  const parsed = WorkflowDefinition.safeParse(written);
  if (!parsed.success) {
    throw invalidDefinition(
      parsed.error.issues.map(({ path, message }) => ({ path: path as Path, message })),
      written,
    );
  }
  const definition = parsed.data;
  const issues: DefinitionIssue[] = [];
  const count = Object.values(definition.jobs).reduce((sum, { steps }) => sum + steps.length, 0);
  if (count > MOST_STEPS)
    issues.push({ path: ['jobs'], message: `have ${count} steps; ${MOST_STEPS} are the most` });
  const jobs = compileJobs(definition, kindOf, issues);
  const compiled = {
    definition,
    code: null,
    jobs,
    ...compileCommon(definition, issues),
    outputs: definition.outputs
      ? names(
          compileTemplate(definition.outputs, ['outputs'], issues),
          'jobs',
          Object.keys(definition.jobs),
          issues,
        )
      : null,
  };
  if (issues.length > 0) throw invalidDefinition(issues, written);
  return { ...compiled, ...pinned(definition) };
}
