import { Counter, Histogram } from 'prom-client';
import type { Metrics } from '../../../kit/telemetry/metrics.ts';
import type { AdapterWatch } from '../../../plugins/index.ts';

const DURATION_MS = [1, 5, 10, 50, 100, 500, 1000, 5000, 10_000, 30_000, 60_000, 120_000];

/** Counts adapter calls of plugins. The model labels have few values, because the operator chooses the models. */
export function createAdapterWatch({ registry, service }: Metrics): AdapterWatch {
  const registers = [registry];
  const total = new Counter({
    name: 'svc_adapter_calls_total',
    help: 'Calls of storage, models and vectors by plugins that ended, by adapter, method and outcome',
    labelNames: ['service', 'adapter', 'method', 'outcome'],
    registers,
  });
  const duration = new Histogram({
    name: 'svc_adapter_call_duration_ms',
    help: 'Duration of these calls in milliseconds, including retries and backoff',
    labelNames: ['service', 'adapter', 'method'],
    buckets: DURATION_MS,
    registers,
  });
  const tokens = new Counter({
    name: 'svc_model_tokens_total',
    help: 'Input and output tokens of models, by adapter, model and direction',
    labelNames: ['service', 'adapter', 'model', 'direction'],
    registers,
  });
  const cost = new Counter({
    name: 'svc_model_cost_dollars_total',
    help: 'Cost of models in US dollars by the configured price table, by adapter and model',
    labelNames: ['service', 'adapter', 'model'],
    registers,
  });
  return {
    called(adapter, method, failed, durationMs) {
      total.inc({ service, adapter, method, outcome: failed ? 'failed' : 'succeeded' });
      duration.observe({ service, adapter, method }, durationMs);
    },
    used(adapter, model, { inputTokens, outputTokens }, dollars) {
      tokens.inc({ service, adapter, model, direction: 'input' }, inputTokens);
      tokens.inc({ service, adapter, model, direction: 'output' }, outputTokens);
      if (dollars !== null) cost.inc({ service, adapter, model }, dollars);
    },
  };
}
