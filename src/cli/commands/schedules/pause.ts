import { z } from 'zod';
import { pauseSchedule, type Schedule } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { schedulesTable } from '../workflows/views.ts';
import { ScheduleArg } from './arguments.ts';

export const pause = defineCommand({
  name: 'schedules pause',
  summary: 'Pause a schedule',
  example: 'svc schedules pause nightly:backup',
  args: z.object({ schedule: ScheduleArg }),
  run: async ({ schedule }, { client }) =>
    ok((await client.call(pauseSchedule, { params: { scheduleId: schedule } })).schedule),
  text: (schedule: Schedule, style) => schedulesTable([schedule], style),
});
