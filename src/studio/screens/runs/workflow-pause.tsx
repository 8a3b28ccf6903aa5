import { call } from '../../api/call.ts';
import { outdate, useQuery } from '../../api/query.ts';
import { useAction } from '../../ui/use-action.ts';

/** Button that pauses or resumes a registered workflow. Shows nothing for another id. */
export function WorkflowPause({ workflowId }: { workflowId: string }) {
  const { data } = useQuery('listWorkflows', {});
  const { isBusy, isFailed, message, run } = useAction();
  const workflow = data?.items.find(({ id }) => id === workflowId);
  if (!workflow) return null;
  const toggle = async (): Promise<string> => {
    await call(workflow.paused ? 'resumeWorkflow' : 'pauseWorkflow', { params: { workflowId } });
    outdate('listWorkflows', 'listRuns');
    return '';
  };
  return (
    <>
      {isFailed && (
        <span class="error" role="alert">
          {message}
        </span>
      )}
      <button type="button" disabled={isBusy} onClick={() => run(toggle)}>
        {workflow.paused ? 'Resume workflow' : 'Pause workflow'}
      </button>
    </>
  );
}
