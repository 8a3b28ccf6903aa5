import { z } from 'zod';
import { getRun, listRunSteps, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { columnsOf } from '../../wrap.ts';
import { RunArg } from './arguments.ts';
import { timelineChart } from './timeline-chart.ts';

interface Shown {
  run: ReplyOf<typeof getRun>;
  steps: ReplyOf<typeof listRunSteps>['items'];
  now: number;
}

/** @spec docs/workflows.md "Timeline and export" */
export const timeline = defineCommand({
  name: 'workflows timeline',
  summary: 'Draw when each attempt of a run was queued, worked and waited',
  example: 'svc workflows timeline run_01b8dac5',
  args: z.object({ run: RunArg }),
  async run({ run }, { client, clock }) {
    const params = { runId: run };
    const [found, steps] = await Promise.all([
      client.call(getRun, { params }),
      client.call(listRunSteps, { params }),
    ]);
    return ok<Shown>({ run: found, steps: steps.items, now: clock.now() });
  },
  text: ({ run, steps, now }: Shown, style) =>
    timelineChart({ run, steps, now }, style, columnsOf(process.stdout)),
});
