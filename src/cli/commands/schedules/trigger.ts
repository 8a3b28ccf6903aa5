import { z } from 'zod';
import { type ReplyOf, triggerSchedule } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { runPairs } from '../workflows/views.ts';
import { ScheduleArg } from './arguments.ts';

export const trigger = defineCommand({
  name: 'schedules trigger',
  summary: 'Start a run of a schedule now',
  example: 'svc schedules trigger nightly:backup',
  args: z.object({ schedule: ScheduleArg }),
  run: async ({ schedule }, { client }) =>
    ok((await client.call(triggerSchedule, { params: { scheduleId: schedule } })).run),
  text: (run: ReplyOf<typeof triggerSchedule>['run'], style) => runPairs(run, style),
});
