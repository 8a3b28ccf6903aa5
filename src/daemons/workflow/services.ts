import type { DaemonServices, Resources } from '../define-daemon.ts';
import { createWorkflowMetrics, type WorkflowMetrics } from './metrics.ts';

export interface WorkflowServices extends DaemonServices {
  metrics: WorkflowMetrics;
}

/** Builds the workflow daemon's parts. */
export function workflowServices({ metrics }: Resources): WorkflowServices {
  return { metrics: createWorkflowMetrics(metrics) };
}
