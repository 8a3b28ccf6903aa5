import { WorkflowDefinition } from '../../../../contracts/index.ts';
import { checkSchedules, compileCommon, pinned } from './compile-common.ts';
import { compileJobs } from './compile-jobs.ts';
import { names } from './compile-names.ts';
import { type CompiledWorkflow, type KindOf, MAX_STEPS } from './compiled-workflow.ts';
import { invalidDefinition, schemaIssues } from './definition-faults.ts';
import { mendShape } from './mend-shape.ts';
import { compileTemplate, type DefinitionIssue, MAX_ISSUES, OPENING, type Path } from './templates.ts';

/** Maximum number of expressions in a definition. Compiling an expression blocks the event loop for about 20 µs. */
const MAX_EXPRESSIONS = 10_000;

/** Compiles a definition. Throws VALIDATION_ERROR, whose `details.issues` contains every fault and its path. */
export function compileDefinition(
  written: unknown,
  kindOf: KindOf,
  { isStored = false } = {},
): CompiledWorkflow {
  const parsed = WorkflowDefinition.safeParse(written);
  if (!parsed.success) {
    const issues = schemaIssues(parsed.error, written, WorkflowDefinition);
    const isHopeless = issues.length >= MAX_ISSUES;
    throw invalidDefinition(
      isHopeless ? issues : [...issues, ...issuesBeside(issues, written, kindOf)],
      written,
    );
  }
  const issues: DefinitionIssue[] = [];
  const compiled = compileParsed(parsed.data, kindOf, issues);
  if (!isStored) checkSchedules(parsed.data, issues);
  if (issues.length > 0) throw invalidDefinition(issues, written);
  return { ...compiled, ...pinned(parsed.data) };
}

function compileParsed(
  definition: WorkflowDefinition,
  kindOf: KindOf,
  issues: DefinitionIssue[],
): Omit<CompiledWorkflow, 'hash' | 'body'> {
  requireFewExpressions(definition);
  const count = Object.values(definition.jobs).reduce((sum, { steps }) => sum + steps.length, 0);
  if (count > MAX_STEPS)
    issues.push({ path: ['jobs'], message: `have ${count} steps; ${MAX_STEPS} are the most` });
  const jobs = compileJobs(definition, kindOf, issues);
  const ids = Object.keys(definition.jobs);
  return {
    definition,
    code: null,
    jobs,
    ...compileCommon(definition, issues),
    outputs: definition.outputs
      ? names(compileTemplate(definition.outputs, ['outputs'], issues), 'jobs', ids, issues)
      : null,
  };
}

/** Throws VALIDATION_ERROR for too many expressions. Called before any expression is compiled. */
function requireFewExpressions(definition: WorkflowDefinition): void {
  const text = JSON.stringify(definition);
  let count = 0;
  for (let at = text.indexOf(OPENING); at !== -1; at = text.indexOf(OPENING, at + OPENING.length))
    if (++count > MAX_EXPRESSIONS) {
      const message = `have more than ${MAX_EXPRESSIONS} expressions; pass large data as input`;
      throw invalidDefinition([{ path: ['jobs'], message }], definition);
    }
}

/**
 * Returns the faults of expressions, times and steps in a definition that also violates the schema. One error can then
 * report all faults.
 */
function issuesBeside(
  shapeIssues: readonly DefinitionIssue[],
  written: unknown,
  kindOf: KindOf,
): DefinitionIssue[] {
  const mended = mendShape(written, shapeIssues);
  if (!mended) return [];
  const issues: DefinitionIssue[] = [];
  compileParsed(mended.definition, kindOf, issues);
  checkSchedules(mended.definition, issues);
  // The repair of the definition might have removed the job or step that a reference names. Faults of references are
  // therefore skipped.
  return issues.filter(
    ({ path, isReference }) => !isReference && !mended.changed.some((changed) => startsWith(path, changed)),
  );
}

const startsWith = (path: Path, start: Path): boolean => start.every((part, index) => path[index] === part);
