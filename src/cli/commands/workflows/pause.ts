import { pauseRun, pauseWorkflow } from '../../../contracts/index.ts';
import { definePauseCommand } from './pause-command.ts';

export const pause = definePauseCommand({
  name: 'workflows pause',
  summary: 'Pause a run, or keep all runs of a workflow in the queue',
  example: 'svc workflows pause --workflow nightly',
  ...{ ofRun: pauseRun, ofWorkflow: pauseWorkflow },
  workflowText: (workflowId) =>
    `The workflow ${workflowId} is paused.\nIts runs stay queued. Runs that have begun continue.`,
});
