import type { WorkflowRun } from '../../../contracts/workflow-records.ts';
import { call, type Reply } from '../../api/call.ts';

const PAGE = 1000;

/** Downloads a run with its steps, events and log lines as a JSON file. */
export async function exportRun(runId: WorkflowRun['id']): Promise<void> {
  const params = { runId };
  const [run, steps, events, logs] = await Promise.all([
    call('getRun', { params }),
    call('listRunSteps', { params }),
    all('listRunEvents', runId),
    all('listRunLogs', runId),
  ]);
  const text = JSON.stringify({ run, steps: steps.items, events, logs }, null, 2);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  link.download = `${runId}.json`;
  link.click();
  URL.revokeObjectURL(link.href);
}

async function all<Name extends 'listRunEvents' | 'listRunLogs'>(
  name: Name,
  runId: WorkflowRun['id'],
): Promise<Array<Reply<Name>['items'][number]>> {
  const items: Array<Reply<Name>['items'][number]> = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const query = { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
    const page: Reply<'listRunEvents' | 'listRunLogs'> = await call(name, {
      params: { runId },
      query,
    } as never);
    items.push(...page.items);
    cursor = page.nextCursor;
  }
  return items;
}
