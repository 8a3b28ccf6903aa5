import { z } from 'zod';
import { getRun, listRunSteps, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import type { Style } from '../../style.ts';
import { table } from '../../table.ts';
import { RunArg } from './arguments.ts';
import { attemptsTable, coloured, runPairs, stepsTable } from './views.ts';

interface Shown {
  run: ReplyOf<typeof getRun>;
  steps: ReplyOf<typeof listRunSteps>['items'];
}

export const show = defineCommand({
  name: 'workflows show',
  summary: 'Show a run with its jobs and steps',
  example: 'svc workflows show run_01b8dac5',
  args: z.object({ run: RunArg }),
  async run({ run }, { client }) {
    const params = { runId: run };
    const [found, steps] = await Promise.all([
      client.call(getRun, { params }),
      client.call(listRunSteps, { params }),
    ]);
    return ok<Shown>({ run: found, steps: steps.items });
  },
  text({ run, steps }: Shown, style) {
    const next = steps.flatMap((step) => nextStep(run.id, step));
    const attempts = attemptsTable(steps, style);
    return [
      `${runPairs(run, style)}\n\n${stepsTable(steps, style)}`,
      ...(attempts === null ? [] : ['', attempts]),
      ...handlerLines(run, style),
      ...(next.length > 0 ? ['', 'Waiting for your action:', ...next.map((line) => `  ${line}`)] : []),
    ].join('\n');
  },
});

/** Returns the runs that the end of the run started. A service of an earlier version names none. */
function handlerLines({ handlers = [] }: Shown['run'], style: Style): string[] {
  if (handlers.length === 0) return [];
  const rows = handlers.map(({ id, workflowId, status }) => [id, workflowId, coloured(status, style)]);
  return ['', table(['started at the end', 'workflow', 'status'], rows, style)];
}

/** Returns the command that lets a waiting step continue. */
function nextStep(runId: string, { id, waitingFor }: Shown['steps'][number]): string[] {
  const fields = fieldsOf(waitingFor?.form);
  if (waitingFor?.for === 'approval')
    return [`svc workflows approve ${runId} ${id}${fields && ` --data ${fields}`}${rolesOf(waitingFor)}`];
  if (waitingFor?.for === 'signal')
    return [
      `svc workflows signal ${runId} ${waitingFor.name ?? '<name>'}${fields && ` --input ${fields}`}${rolesOf(waitingFor)}`,
    ];
  if (waitingFor?.for === 'decision') return [`svc workflows decide ${runId} ${id} retry`];
  return [];
}

/** Returns the fields of a form as JSON in which the values are to be filled in. */
function fieldsOf(form: Record<string, unknown> | undefined): string {
  if (!form) return '';
  const names = Object.keys((form.properties ?? {}) as object);
  return `'{${names.map((name) => `${JSON.stringify(name)}: …`).join(', ')}}'`;
}

function rolesOf({ approvers }: { approvers?: { roles: readonly string[] } | undefined }): string {
  return approvers ? `  (needs the role ${approvers.roles.join(' or ')})` : '';
}
