// Imports only types, because the studio bundles this file.
import type { WebhookDeliveryDetails } from './webhook-deliveries.ts';
import type { WebhookFixture } from './webhook-fixture.ts';

/** Headers that belong to one connection, one signature or one delivery attempt, and not to the event. */
const OF_REQUEST =
  /^(?:host|content-(?!type$).*|connection|accept.*|transfer-encoding|user-agent|x-forwarded-.*|forwarded|via|traceparent|tracestate|cookie|authorization|origin|referer|sec-.*|x-svc-.*|x-request-id|x-trace-id|.*(?:signature|token|secret|api-key|timestamp|hmac).*)$/;

/** Returns the headers of a delivery that belong to its event, with names in lower case. */
export function eventHeaders(headers: WebhookDeliveryDetails['headers']): Record<string, string> {
  return Object.fromEntries(
    headers
      .map(([name, value]) => [name.toLowerCase(), value] as const)
      .filter(([name, value]) => !OF_REQUEST.test(name) && value !== '[masked]'),
  );
}

/** Converts a delivery to a fixture. Returns undefined if the body is not stored. */
export function fixtureOf(delivery: WebhookDeliveryDetails): WebhookFixture | undefined {
  const { pluginId, event, instanceId, headers, body, bodyEncoding, httpStatus } = delivery;
  if (body === null) return undefined;
  return {
    format: 'svc.webhook-fixture/1',
    pluginId: pluginId as WebhookFixture['pluginId'],
    event: event as WebhookFixture['event'],
    ...(instanceId === null ? {} : { instanceId: instanceId as NonNullable<WebhookFixture['instanceId']> }),
    headers: eventHeaders(headers),
    bodyEncoding,
    body,
    status: httpStatus,
  };
}

/** Returns the name of the file in which a fixture is saved. */
export function fixtureFileName({ pluginId, event, webhookId }: WebhookDeliveryDetails): string {
  const name = `${pluginId}-${event}-${webhookId.slice(-6)}`;
  return `${name.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^-/, '')}.json`;
}
