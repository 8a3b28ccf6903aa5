import { z } from 'zod';
import {
  listSchedules,
  pauseSchedule,
  type ReplyOf,
  resumeSchedule,
  type Schedule,
  triggerSchedule,
} from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageOf, pageShort } from '../../list-page.ts';
import { runPairs, schedulesTable } from '../workflows/views.ts';

const args = z.object({ schedule: z.string().min(1).describe('schedule id: <workflow>:<number>') });

export const list = defineCommand({
  name: 'schedules list',
  summary: 'List schedules with their next and last times',
  example: 'svc schedules list',
  args: z.object(pageFlags),
  short: pageShort,
  async run(flags, { client }) {
    const reply = await client.call(listSchedules);
    return ok({ ...reply, ...pageOf(reply.items, flags, ({ id }) => id) });
  },
  text: ({ items, nextCursor }: ListPage<Schedule>, style) =>
    schedulesTable(items, style) + moreLine(nextCursor, style),
});

export const pause = defineCommand({
  name: 'schedules pause',
  summary: 'Pause a schedule',
  example: 'svc schedules pause nightly:backup',
  args,
  run: async ({ schedule }, { client }) =>
    ok((await client.call(pauseSchedule, { params: { scheduleId: schedule } })).schedule),
  text: (schedule: Schedule, style) => schedulesTable([schedule], style),
});

export const resume = defineCommand({
  name: 'schedules resume',
  summary: 'Resume a schedule',
  example: 'svc schedules resume nightly:backup',
  args,
  run: async ({ schedule }, { client }) =>
    ok((await client.call(resumeSchedule, { params: { scheduleId: schedule } })).schedule),
  text: (schedule: Schedule, style) => schedulesTable([schedule], style),
});

export const trigger = defineCommand({
  name: 'schedules trigger',
  summary: 'Start a run of a schedule now',
  example: 'svc schedules trigger nightly:backup',
  args,
  run: async ({ schedule }, { client }) =>
    ok((await client.call(triggerSchedule, { params: { scheduleId: schedule } })).run),
  text: (run: ReplyOf<typeof triggerSchedule>['run'], style) => runPairs(run, style),
});
