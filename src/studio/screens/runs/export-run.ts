import type { WorkflowRun } from '../../../contracts/workflow-records.ts';
import { call } from '../../api/call.ts';

/** Downloads a run with its steps, events and log lines as a JSON file. */
export async function exportRun(runId: WorkflowRun['id']): Promise<void> {
  const exported = await call('exportRun', { params: { runId } });
  const text = JSON.stringify(exported, null, 2);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  link.download = `${runId}.json`;
  link.click();
  URL.revokeObjectURL(link.href);
}
