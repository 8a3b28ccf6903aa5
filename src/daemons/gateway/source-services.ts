import { HEADERS, startRun } from '../../contracts/index.ts';
import { createClient, serviceHeaders } from '../../http/index.ts';
import { traceparent } from '../../kit/telemetry/trace.ts';
import { seconds } from '../../kit/time/duration.ts';
import type { GatewayStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import { OutgoingClient } from '../outgoing/outgoing-client.ts';
import { commandCall, requireCommand } from '../plugin-runtime/commands.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';
import type { Queues } from './domain/queues/queues.ts';
import { SourceAdmin } from './domain/sources/admin/source-admin.ts';
import { SourceReplays } from './domain/sources/admin/source-replays.ts';
import { SourceSecrets } from './domain/sources/admin/source-secrets.ts';
import { SourceViews } from './domain/sources/admin/source-views.ts';
import { forwardTo } from './domain/sources/destinations/forward.ts';
import {
  putInQueue,
  type RunCommand,
  runCommand,
  type StartWorkflow,
  startWorkflow,
} from './domain/sources/destinations/platform-targets.ts';
import { FanOut, type FanOutDeps } from './domain/sources/fan-out.ts';
import { SourceArrivals } from './domain/sources/source-arrivals.ts';
import { SourceCalls } from './domain/sources/source-calls.ts';
import type { Replays } from './domain/webhooks/admin/replays.ts';
import { deliverySpan } from './domain/webhooks/dispatch/delivery-span.ts';
import type { WebhookState } from './webhook-state.ts';

const START_TIMEOUT_MS = seconds(10);

export interface SourceDispatchDeps extends Pick<FanOutDeps, 'enqueue' | 'observe'> {
  resources: Resources;
  store: GatewayStore;
  queues: Pick<Queues, 'put'>;
  plugins: PluginRuntime;
  state: WebhookState;
}

/** Builds the services that run deliveries to sources and destinations. */
export function sourceDispatch(
  { resources, store, queues, plugins, state, enqueue, observe }: SourceDispatchDeps,
  stack: AsyncDisposableStack,
) {
  const { config, clock, logger } = resources;
  const { registry, targets, expressions, sealedHeaders } = state.sources;
  const { inbox } = store;
  const client = stack.adopt(
    new OutgoingClient({ allowedHosts: config.sources.forwardAllow, setting: 'sources.forwardAllow' }),
    (opened) => opened.close(),
  );
  const fanOut = new FanOut({ inbox, targets, expressions, clock, enqueue, observe });
  const calls = new SourceCalls({
    ...{ registry, fanOut, expressions, sealedHeaders, inbox, logger },
    destinations: {
      forward: forwardTo(client, clock),
      workflow: startWorkflow(workflowStarts(resources)),
      command: runCommand(commandRuns(plugins)),
      queue: putInQueue((item) => queues.put(item)),
    },
  });
  return { sourceCall: calls.call, fanOut };
}

export interface SourceServicesDeps {
  resources: Resources;
  store: GatewayStore;
  state: WebhookState;
  replays: Replays;
  fanOut: FanOut;
}

/** Builds the services of the API of sources, and gives declared sources their secrets. */
export async function sourceServices({ resources, store, state, replays, fanOut }: SourceServicesDeps) {
  const { clock, random, env, config, address } = resources;
  const { inbox } = store;
  const { secrets, expected, pauses, sources } = state;
  const { registry, targets, expressions, sealedHeaders, declared } = sources;
  const sourceSecrets = new SourceSecrets({ secrets, targets, expected, random });
  await sourceSecrets.provisionDeclared(declared, env);
  const baseUrl = () => (config.gateway.publicUrl ?? `http://localhost:${address.port}`).replace(/\/+$/, '');
  const views = new SourceViews({ pauses, baseUrl });
  const admin = new SourceAdmin({
    ...{ registry, secrets, sourceSecrets, pauses, views, expressions, inbox, clock },
  });
  return {
    sourceAdmin: admin,
    sourceReplays: new SourceReplays({ inbox, admin, targets, replays, fanOut, random }),
    sourceArrivals: new SourceArrivals({ registry, targets, secrets }),
    sealedHeaders,
  };
}

/** Returns the function that starts runs. The id of the delivery makes repeated starts return the same run. */
function workflowStarts({ peers, keys }: Pick<Resources, 'peers' | 'keys'>): StartWorkflow {
  const client = createClient({ url: () => peers.urlOf('workflow'), peer: 'workflow service' });
  return async (delivery, workflowId, input) => {
    const { webhookId, event, namespaceId, requestId, traceId } = delivery;
    const spanId = deliverySpan(delivery);
    const headers = {
      ...(spanId === undefined ? {} : { traceparent: traceparent(traceId, spanId) }),
      ...serviceHeaders(keys.internalSecret, { hostId: `source:${event}`, namespaceId }),
      [HEADERS.requestId]: requestId,
      [HEADERS.traceId]: traceId,
    };
    const body = { workflowId, input: input as never, idempotencyKey: `source:${webhookId}` };
    const { run } = await client.call(startRun, { body }, { headers, timeoutMs: START_TIMEOUT_MS });
    return { runId: run.id };
  };
}

function commandRuns(plugins: PluginRuntime): RunCommand {
  return async (delivery, { pluginId, commandId }, input, timeoutMs) => {
    const { plugin, command } = requireCommand(plugins.registry, pluginId, commandId);
    const { namespaceId: tenantId, requestId, traceId } = delivery;
    const parentSpanId = deliverySpan(delivery);
    return plugins.execute({
      timeoutMs,
      ...commandCall(command),
      plugin,
      host: 'cli',
      hostContext: { host: 'cli', command: command.id },
      input,
      params: {},
      user: null,
      ...{ tenantId, requestId, traceId },
      ...(parentSpanId === undefined ? {} : { parentSpanId }),
    });
  };
}
