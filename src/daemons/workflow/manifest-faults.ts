import {
  isCodeWorkflow,
  type ManifestV3,
  PluginSchedule,
  type WorkflowFault,
} from '../../contracts/index.ts';
import { messageOf, PlatformError } from '../../kit/errors/errors.ts';
import { repeatedIds } from './domain/cron/schedule-ids.ts';
import { scheduleFault } from './domain/cron/schedule-times.ts';
import { compileCode } from './domain/definition/compile-code.ts';
import { compileDefinition } from './domain/definition/compile-definition.ts';
import { type ReportedIssue, reportedPath } from './domain/definition/definition-faults.ts';
import { endHandlerFaults, pluginHandlerFault } from './domain/definition/end-handler-faults.ts';
import { refusePluginScripts } from './domain/definition/scripts.ts';
import { type FindPlugin, type KnownPlugin, unresolved } from './domain/definition/unresolved.ts';
import { scheduleLimit } from './schedule-limit.ts';
import { checkingKinds } from './step-kinds.ts';

type Fault = Pick<WorkflowFault, 'path' | 'message'>;

/** Returns the ids of a manifest's commands, jobs and webhooks, to which workflows can refer. */
export function knownPlugin({ commands, jobs, webhooks }: ManifestV3): KnownPlugin {
  return {
    commands: new Set(commands.map(({ id }) => id)),
    jobs: new Set(jobs.map(({ id }) => id)),
    webhooks: new Set(webhooks.map(({ event }) => event)),
  };
}

/**
 * Returns the faults in the workflows and schedules of a manifest, with their paths. `others` finds other plugins by
 * id.
 */
export function manifestFaults(manifest: ManifestV3, others: FindPlugin = () => 'anything'): Fault[] {
  const own = knownPlugin(manifest);
  const find: FindPlugin = (id) => (id === manifest.id ? own : others(id));
  return [
    ...manifest.workflows.flatMap((written, index) =>
      workflowFaults(written, manifest, find).map(({ path, message }) => ({
        path: `workflows[${index}]${path === '' ? '' : `.${path}`}`,
        message,
      })),
    ),
    ...manifest.schedules.flatMap((written, index) => planFaults(written, `schedules[${index}]`)),
    ...scheduleLimit(manifest).faults,
    ...repeatedIds(manifest.schedules).map((index) => ({
      path: `schedules[${index}].id`,
      message: 'is already the id of an earlier schedule',
    })),
  ];
}

function workflowFaults(written: object, manifest: ManifestV3, find: FindPlugin): Fault[] {
  const handlerFault = pluginHandlerFault(manifest);
  try {
    const workflow = isCodeWorkflow(written as Record<string, unknown>)
      ? compileCode(written, manifest.id, checkingKinds())
      : compileDefinition(written, checkingKinds());
    refusePluginScripts(workflow, written);
    return [
      ...endHandlerFaults(workflow, written, (handler) => handlerFault(handler, () => undefined)),
      ...unresolved(workflow, find).map(({ path, message }) => ({
        path: reportedPath(path, written),
        message,
      })),
    ];
  } catch (error) {
    const issues =
      error instanceof PlatformError ? (error.details.issues as ReportedIssue[] | undefined) : undefined;
    return issues ?? [{ path: '', message: messageOf(error) }];
  }
}

/**
 * Returns the faults in the cron expression and time zone of a schedule. The check of the manifest reports all other
 * faults.
 */
function planFaults(written: unknown, at: string): Fault[] {
  const { data: plan } = PluginSchedule.safeParse(written);
  const fault = plan && scheduleFault(plan);
  return fault ? [{ path: `${at}.${fault.key}`, message: fault.message }] : [];
}
