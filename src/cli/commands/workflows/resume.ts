import { resumeRun, resumeWorkflow } from '../../../contracts/index.ts';
import { definePauseCommand } from './pause-command.ts';

export const resume = definePauseCommand({
  name: 'workflows resume',
  summary: 'Resume a paused run or workflow',
  example: 'svc workflows resume run_01b8dac5',
  ...{ ofRun: resumeRun, ofWorkflow: resumeWorkflow },
  workflowText: (workflowId) => `The workflow ${workflowId} is not paused.`,
});
