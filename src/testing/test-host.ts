import { resolve } from 'node:path';
import { manualClock } from '../kit/time/clock.ts';
import type { LoadedPlugin } from '../plugins/index.ts';
import type { CallerOptions, CommandOptions, RouteOptions, TestLog, WebhookOptions } from './call-types.ts';
import { createDeliveries } from './deliveries.ts';
import { emittedMessages } from './emitted-messages.ts';
import { fixtureDelivery, readFixture } from './fixtures.ts';
import { HandlerCalls } from './handler-calls.ts';
import type { TestHost, TestHostOptions } from './host-types.ts';
import { requireSupportedNode } from './node-version.ts';
import { pluginFolder, requireLoaded } from './plugin-folder.ts';
import type { PluginTypes, UntypedPlugin } from './result-types.ts';
import { callRoute } from './route-call.ts';
import { startTestServices } from './services.ts';
import { workflowCalls } from './workflow-calls.ts';

/**
 * Starts the services for a plugin under test. If the plugin cannot be loaded, rejects with the first problem, such as
 * INVALID_MANIFEST.
 */
export async function createTestHost<Plugin extends PluginTypes = UntypedPlugin>(
  options: TestHostOptions<Plugin> = {},
): Promise<TestHost<Plugin>> {
  requireSupportedNode();
  const clock = manualClock(options.startAt);
  const logs: TestLog[] = [];
  const pluginUnderTest = await pluginFolder(options.plugin ?? '.');
  const services = await startTestServices({
    plugins: [pluginUnderTest.folder, ...(options.plugins ?? []).map((other) => resolve(other))],
    pluginConfig:
      pluginUnderTest.id === undefined || !options.config ? {} : { [pluginUnderTest.id]: options.config },
    adapters: options.adapters ?? {},
    fetch: options.fetch,
    clock,
    write: (line) => void logs.push(line),
  });
  const { rest, keys } = services;

  let plugin: LoadedPlugin;
  try {
    plugin = requireLoaded(pluginUnderTest, rest.services.plugins.registry);
    await services.startFor(plugin.manifest);
    for (const [name, value] of Object.entries(options.secrets ?? {}))
      await services.setSecret('default', name, value);
    for (const [name, token] of Object.entries(options.connections ?? {}))
      await services.setConnection('default', name, token);
  } catch (error) {
    await services.close();
    throw error;
  }

  const deliver = createDeliveries(services);
  const handlers = new HandlerCalls(plugin, services);
  const base = `${rest.url}/api/v1/plugins/${encodeURIComponent(plugin.id)}`;
  return {
    manifest: plugin.manifest,
    logs,
    command: <Result>(commandId: string, input?: unknown, commandOptions?: CommandOptions) =>
      handlers.command<Result>(commandId, input, commandOptions),
    job: <Result>(jobId: string, input?: unknown, caller?: CallerOptions) =>
      handlers.job<Result>(jobId, input, caller),
    route: <Body>(method: string, path: string, routeOptions: RouteOptions = {}) =>
      callRoute<Body>(base + (path === '/' ? '' : path), method, routeOptions, keys.internalSecret),
    webhook: <Result>(event: string, payload: unknown, webhookOptions?: WebhookOptions) =>
      handlers.webhook<Result>(event, payload, webhookOptions),
    deliver: (event, payload, deliveryOptions = {}) =>
      deliver(plugin.id, handlers.requireWebhook(event), payload, deliveryOptions),
    replay: async (given, replayOptions = {}) => {
      const fixture = typeof given === 'string' ? await readFixture(given) : given;
      const { body, options: deliveryOptions } = fixtureDelivery(fixture, replayOptions);
      return deliver(plugin.id, handlers.requireWebhook(fixture.event), body, deliveryOptions);
    },
    setSecret: (name, value, tenantId = 'default') => services.setSecret(tenantId, name, value),
    validator: (event, request) => handlers.validator(event, request),
    ...workflowCalls(services, clock),
    emitted: emittedMessages(services),
    advance: (ms) => clock.advance(ms),
    close: () => services.close(),
    [Symbol.asyncDispose]: () => services.close(),
  };
}
