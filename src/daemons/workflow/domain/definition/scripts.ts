import type { CallVia, Role } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import { SCRIPT_KIND } from '../steps/kinds/run.ts';
import type { CompiledWorkflow } from './compiled-workflow.ts';
import { invalidDefinition } from './definition-faults.ts';
import type { DefinitionIssue } from './templates.ts';

type Jobs = Pick<CompiledWorkflow, 'jobs'>;

export const hasScripts = (workflow: Jobs): boolean => scriptIssues(workflow, '').length > 0;

/** Returns an issue with the message for each step that runs a script. */
export function scriptIssues({ jobs }: Jobs, message: string): DefinitionIssue[] {
  return jobs.flatMap(({ id, steps }) =>
    steps
      .filter(({ kind }) => kind.name === SCRIPT_KIND)
      .map(({ index }) => ({ path: ['jobs', id, 'steps', index, 'run'], message })),
  );
}

/**
 * Throws VALIDATION_ERROR for scripts in a manifest: they would run without the permissions of the plugin, which
 * administrators review.
 */
export function refusePluginScripts(workflow: Jobs, written: unknown): void {
  const issues = scriptIssues(
    workflow,
    'is refused in plugins: put the code into a command of the plugin, or the workflow into a file of the project',
  );
  if (issues.length > 0) throw invalidDefinition(issues, written);
}

/** The caller that starts a run with a definition of its own. */
export interface ScriptStarter {
  hostId: string;
  role?: Role | null | undefined;
  via?: CallVia | undefined;
}

/**
 * Throws FORBIDDEN if a caller who is no administrator starts a definition with scripts that is not registered. The
 * role is undefined for calls without a gateway.
 */
export function requireScriptStarter(
  workflow: Jobs,
  { hostId, role, via }: ScriptStarter,
  admins: readonly string[],
): void {
  if (!hasScripts(workflow)) return;
  const isAdmin = role === 'admin' || (role === null && admins.includes(hostId));
  if (isAdmin && via !== 'agent') return;
  throw new PlatformError(
    'FORBIDDEN',
    'Only administrators may start a definition with scripts (run:) that is not registered.',
    { details: { role: role ?? null, hint: 'Put the definition into a workflow file of the project.' } },
  );
}
