import {
  CodeWorkflowDefinition,
  isCodeWorkflow,
  type ManifestV3,
  PluginSchedule,
  type ScheduleDefinition,
  WorkflowDefinition,
} from '../contracts/index.ts';

/** A part of a plugin that runs without a user's request: a schedule, event trigger, lifecycle hook or validator. */
export interface SelfStarting {
  what: 'schedule' | 'event' | 'hook' | 'validator';
  name: string;
  /** Description of when the plugin's code runs, for the consent prompt. */
  when: string;
}

/** Summary of a workflow, for the consent prompt. */
export interface WorkflowBrief {
  id: string;
  name: string | null;
  /** Whether the workflow's steps are defined in code. */
  isCode: boolean;
  /** Whether the workflow is valid. An invalid workflow never starts. */
  isSound: boolean;
}

export function workflowBriefs({ workflows }: ManifestV3): WorkflowBrief[] {
  return workflows.map((written, index) => ({
    id: typeof written.id === 'string' ? written.id : `workflows[${index}]`,
    name: typeof written.name === 'string' ? written.name : null,
    isCode: isCodeWorkflow(written),
    isSound: parsed(written) !== undefined,
  }));
}

/** Returns the schedules, event triggers, lifecycle hooks and validators that run without a user's request. */
export function selfStarting(manifest: ManifestV3): SelfStarting[] {
  return [
    ...ofWorkflows(manifest),
    ...ofSchedules(manifest),
    ...ofWebhooks(manifest),
    ...ofLifecycle(manifest),
  ];
}

function parsed(written: Record<string, unknown>) {
  const schema = isCodeWorkflow(written) ? CodeWorkflowDefinition : WorkflowDefinition;
  return schema.safeParse(written).data;
}

function ofWorkflows({ workflows }: ManifestV3): SelfStarting[] {
  return workflows.flatMap((written): SelfStarting[] => {
    const workflow = parsed(written);
    if (!workflow) return [];
    const { id, on } = workflow;
    return [
      ...on.schedule.map((plan) => scheduled(id, plan)),
      ...(on.webhook ?? []).map(({ pluginId, event, instanceId, if: condition }): SelfStarting => {
        const source = `${pluginId}/${event}${instanceId === undefined ? '' : `/${instanceId}`}`;
        const only = condition === undefined ? '' : ', on a condition';
        return { what: 'event', name: `${source} -> ${id}`, when: `after each delivery of ${source}${only}` };
      }),
    ];
  });
}

function ofSchedules({ schedules }: ManifestV3): SelfStarting[] {
  return schedules.flatMap((written): SelfStarting[] => {
    const plan = PluginSchedule.safeParse(written).data;
    return plan ? [scheduled(plan.workflow, plan)] : [];
  });
}

function scheduled(workflow: string, { cron, timezone }: ScheduleDefinition): SelfStarting {
  return { what: 'schedule', name: `${cron} ${timezone} -> ${workflow}`, when: `at ${cron} (${timezone})` };
}

function ofWebhooks({ webhooks }: ManifestV3): SelfStarting[] {
  return webhooks.flatMap(({ event, auth, onProvision }): SelfStarting[] => [
    ...(auth.type === 'custom'
      ? [
          {
            what: 'validator' as const,
            name: event,
            when: `on each request to ${event}, before its sender is known`,
          },
        ]
      : []),
    ...(onProvision === undefined
      ? []
      : [{ what: 'hook' as const, name: `onProvision ${event}`, when: `when ${event} gets a secret` }]),
  ]);
}

function ofLifecycle({ lifecycle }: ManifestV3): SelfStarting[] {
  const { onEnable, onDisable } = lifecycle ?? {};
  return [
    ...(onEnable === undefined
      ? []
      : [
          {
            what: 'hook' as const,
            name: 'onEnable',
            when: 'when it is installed, updated, linked or enabled',
          },
        ]),
    ...(onDisable === undefined
      ? []
      : [{ what: 'hook' as const, name: 'onDisable', when: 'when it is disabled, unlinked or uninstalled' }]),
  ];
}
