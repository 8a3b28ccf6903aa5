import { z } from 'zod';
import { NoFilters, page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { EpochMs, WorkflowRun } from './workflow-records.ts';

const tags = ['workflows'];

export const Schedule = z
  .object({
    id: z.string(),
    workflowId: z.string(),
    cron: z.string(),
    timezone: z.string(),
    overlap: z.string(),
    catchUp: z.string(),
    paused: z.boolean(),
    nextAt: EpochMs.nullable(),
    lastAt: EpochMs.nullable().describe('The last scheduled time that was processed'),
    lastRunId: z.string().nullable(),
  })
  .meta({ id: 'Schedule' });
export type Schedule = z.infer<typeof Schedule>;

const scheduleParams = z.object({ scheduleId: z.string().min(1).max(512) });

export const listSchedules = endpoint({
  method: 'GET',
  path: '/api/v1/workflows/schedules',
  summary: 'List the schedules of registered workflows',
  tags,
  query: NoFilters,
  reply: page(Schedule),
});

export const pauseSchedule = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/schedules/:scheduleId/pause',
  summary: 'Pause a schedule',
  tags,
  params: scheduleParams,
  reply: z.object({ schedule: Schedule }),
  errors: ['NOT_FOUND'],
});

/** Resumes a schedule. Start times that passed during the pause are skipped. */
export const resumeSchedule = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/schedules/:scheduleId/resume',
  summary: 'Resume a schedule',
  tags,
  params: scheduleParams,
  reply: z.object({ schedule: Schedule }),
  errors: ['NOT_FOUND'],
});

export const triggerSchedule = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/schedules/:scheduleId/trigger',
  summary: 'Start a run of a schedule now',
  tags,
  status: 202,
  params: scheduleParams,
  reply: z.object({ run: WorkflowRun }),
  errors: ['NOT_FOUND', 'WORKFLOW_NOT_FOUND', 'QUOTA_EXCEEDED', 'CONCURRENT_LIMIT_EXCEEDED'],
});
