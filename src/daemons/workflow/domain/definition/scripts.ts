import type { Caller } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import { SCRIPT_KIND } from '../steps/kinds/run.ts';
import type { CompiledStep, CompiledWorkflow } from './compiled-workflow.ts';
import { invalidDefinition } from './definition-faults.ts';
import type { DefinitionIssue } from './templates.ts';

type Jobs = Pick<CompiledWorkflow, 'jobs'>;

/** Called for each start, so it stops at the first script. */
export const hasScripts = ({ jobs }: Jobs): boolean => jobs.some(({ steps }) => steps.some(isScript));

const isScript = ({ kind }: CompiledStep): boolean => kind.name === SCRIPT_KIND;

/** Returns an issue with the message for each step that runs a script. */
export function scriptIssues({ jobs }: Jobs, message: string): DefinitionIssue[] {
  return jobs.flatMap(({ id, steps }) =>
    steps.filter(isScript).map(({ index }) => ({ path: ['jobs', id, 'steps', index, 'run'], message })),
  );
}

/** Predicate of a message about a script in a plugin. */
export const REFUSED_IN_PLUGINS =
  'is refused in plugins: put the code into a command of the plugin, or the workflow into a file of the project';

/**
 * Throws VALIDATION_ERROR for scripts in a manifest: they would run without the permissions of the plugin, which
 * administrators review.
 */
export function refusePluginScripts(workflow: Jobs, written: unknown): void {
  const issues = scriptIssues(workflow, REFUSED_IN_PLUGINS);
  if (issues.length > 0) throw invalidDefinition(issues, written);
}

/** The caller that starts a run with a definition of its own. */
export type ScriptStarter = Pick<Caller, 'isAdministrator' | 'via'>;

/**
 * Throws FORBIDDEN if a definition with scripts that is not registered is started by a caller who does not administer
 * the platform. Calls of agents, plugins and triggers are refused for all callers, because their text could be injected.
 */
export function requireScriptStarter(workflow: Jobs, who: ScriptStarter): void {
  if (mayStart(workflow, who)) return;
  throw forbidden(
    'Only administrators of the platform (gateway.admins, or the role admin for all namespaces by studio.oidc.roles) may start a definition with scripts (run:) that is not registered. Put the definition into a workflow file of the project.',
    who,
  );
}

/** Throws FORBIDDEN as `requireScriptStarter` does, unless the run has the definition that is registered now. */
export function requireScriptRerun(
  run: { id: string; workflow: CompiledWorkflow },
  registered: CompiledWorkflow | undefined,
  who: ScriptStarter,
): void {
  const { id, workflow } = run;
  if (registered === undefined) {
    requireScriptStarter(workflow, who);
    return;
  }
  if (registered.hash === workflow.hash || mayStart(workflow, who)) return;
  throw forbidden(
    `The workflow "${workflow.definition.id}" has another definition now than run ${id}, whose scripts (run:) only administrators of the platform may run again. Start the workflow again, or let an administrator rerun the run.`,
    who,
  );
}

function mayStart(workflow: Jobs, { isAdministrator, via }: ScriptStarter): boolean {
  return (isAdministrator === true && via === undefined) || !hasScripts(workflow);
}

function forbidden(message: string, { isAdministrator = false, via }: ScriptStarter): PlatformError {
  return new PlatformError('FORBIDDEN', message, { details: { isAdministrator, via: via ?? null } });
}
