import { Counter, Gauge, Histogram } from 'prom-client';
import { boundedLabel, type Metrics } from '../../kit/telemetry/metrics.ts';

const RUN_SECONDS = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 6 * 3600, 24 * 3600];
const MAX_WORKFLOWS = 200;
const MAX_PLUGINS = 200;

/** Metrics of runs and jobs. @spec Metrics: workflow daemon */
export interface WorkflowMetrics {
  runEnded(workflowId: string, status: string, durationSeconds: number): void;
  jobStarted(): void;
  jobEnded(): void;
  /** Sets the number of runs that are waiting for an unavailable plugin. */
  waitForPlugin(pluginId: string, runs: number): void;
}

export function createWorkflowMetrics({ registry }: Metrics): WorkflowMetrics {
  const registers = [registry];
  const service = 'workflow';
  const runs = new Counter({
    name: 'svc_workflow_runs_total',
    help: 'Workflow runs that ended, by status',
    labelNames: ['service', 'workflow', 'status'],
    registers,
  });
  const durations = new Histogram({
    name: 'svc_workflow_run_duration_seconds',
    help: 'Time from the start of a workflow run to its end, in seconds',
    labelNames: ['service', 'workflow', 'status'],
    buckets: RUN_SECONDS,
    registers,
  });
  const inFlight = new Gauge({
    name: 'svc_workflow_jobs_in_flight',
    help: 'Jobs that are being executed now',
    labelNames: ['service'],
    registers,
  });
  inFlight.set({ service }, 0);
  const waiting = new Gauge({
    name: 'svc_workflow_runs_waiting_for_plugin',
    help: 'Runs that wait for a plugin that is not loaded, or whose code does not load',
    labelNames: ['service', 'plugin'],
    registers,
  });
  const knownPlugin = boundedLabel(MAX_PLUGINS);
  // The number of label values is bounded, because inline definitions can have any id.
  const known = boundedLabel(MAX_WORKFLOWS);
  return {
    runEnded(workflowId, status, seconds) {
      const labels = { service, workflow: known(workflowId), status };
      runs.inc(labels);
      durations.observe(labels, seconds);
    },
    jobStarted: () => inFlight.inc({ service }),
    jobEnded: () => inFlight.dec({ service }),
    waitForPlugin: (pluginId, runs) => waiting.set({ service, plugin: knownPlugin(pluginId) }, runs),
  };
}
