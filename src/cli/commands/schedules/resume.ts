import { z } from 'zod';
import { resumeSchedule, type Schedule } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { schedulesTable } from '../workflows/views.ts';
import { ScheduleArg } from './arguments.ts';

export const resume = defineCommand({
  name: 'schedules resume',
  summary: 'Resume a schedule',
  example: 'svc schedules resume nightly:backup',
  args: z.object({ schedule: ScheduleArg }),
  run: async ({ schedule }, { client }) =>
    ok((await client.call(resumeSchedule, { params: { scheduleId: schedule } })).schedule),
  text: (schedule: Schedule, style) => schedulesTable([schedule], style),
});
