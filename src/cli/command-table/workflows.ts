import type { AnyCommand } from '../define-command.ts';
import type { CommandEntry } from './entry.ts';

const entry = (
  name: string,
  summary: string,
  example: string,
  load: () => Promise<AnyCommand>,
): CommandEntry => ({ name, summary, group: 'Workflows', example, load });

const read = () => import('../commands/workflows/read.ts');
const act = () => import('../commands/workflows/act.ts');
const schedules = () => import('../commands/schedules/schedules.ts');
const jobs = () => import('../commands/jobs/jobs.ts');

/** Workflows, their schedules and background jobs. */
export const WORKFLOW_COMMANDS: readonly CommandEntry[] = [
  entry(
    'workflows list',
    'List registered workflows, and the problems of invalid ones',
    'svc workflows list',
    async () => (await read()).list,
  ),
  entry(
    'workflows run',
    'Start a run of a registered workflow or a definition file',
    'svc workflows run nightly --follow',
    async () => (await import('../commands/workflows/run.ts')).run,
  ),
  entry(
    'workflows create',
    'Create a workflow file with a schema for editors',
    'svc workflows create nightly',
    async () => (await import('../commands/workflows/create.ts')).create,
  ),
  entry(
    'workflows validate',
    'Check a workflow file and list all problems with their lines',
    'svc workflows validate workflows/nightly.yaml',
    async () => (await import('../commands/workflows/validate.ts')).validate,
  ),
  entry(
    'workflows runs',
    'List runs, newest first, with pending decisions on top',
    'svc workflows runs --status failed',
    async () => (await read()).runs,
  ),
  entry(
    'workflows show',
    'Show a run with its jobs and steps',
    'svc workflows show run_01b8dac5',
    async () => (await read()).show,
  ),
  entry(
    'workflows logs',
    "Show a run's log lines, or follow them until it ends",
    'svc workflows logs run_01b8dac5 -f',
    async () => (await read()).logs,
  ),
  entry(
    'workflows cancel',
    'Cancel a run and its children',
    'svc workflows cancel run_01b8dac5',
    async () => (await act()).cancel,
  ),
  entry(
    'workflows rerun',
    'Run again from the start or from a step',
    'svc workflows rerun run_01b8dac5 --from build.test',
    async () => (await act()).rerun,
  ),
  entry(
    'workflows approve',
    'Approve a waiting step, or refuse it with --refuse',
    'svc workflows approve run_01b8dac5 release.gate --comment "looks good"',
    async () => (await act()).approve,
  ),
  entry(
    'workflows decide',
    'Retry, complete or fail interrupted steps',
    'svc workflows decide run_01b8dac5 pay.charge retry',
    async () => (await act()).decide,
  ),
  entry(
    'workflows signal',
    'Send a signal to a run',
    `svc workflows signal run_01b8dac5 paid --input '{"amount": 12}'`,
    async () => (await act()).signal,
  ),
  entry(
    'schedules list',
    'List schedules with their next and last times',
    'svc schedules list',
    async () => (await schedules()).list,
  ),
  entry(
    'schedules pause',
    'Pause a schedule',
    'svc schedules pause nightly:backup',
    async () => (await schedules()).pause,
  ),
  entry(
    'schedules resume',
    'Resume a schedule',
    'svc schedules resume nightly:backup',
    async () => (await schedules()).resume,
  ),
  entry(
    'schedules trigger',
    'Start a run of a schedule now',
    'svc schedules trigger nightly:backup',
    async () => (await schedules()).trigger,
  ),
  entry(
    'jobs submit',
    "Submit a background job to a plugin's job handler",
    `svc jobs submit github/sync --input '{"repository": "octo/hello"}'`,
    async () => (await jobs()).submit,
  ),
  entry(
    'jobs show',
    'Show a job and its result',
    'svc jobs show job_01b8dac5',
    async () => (await jobs()).show,
  ),
  entry(
    'jobs list',
    'List jobs, newest first',
    'svc jobs list --status failed',
    async () => (await jobs()).list,
  ),
  entry('jobs cancel', 'Cancel a job', 'svc jobs cancel job_01b8dac5', async () => (await jobs()).cancel),
];
