import {
  type CallInput,
  HEADERS,
  provisionWebhook,
  sendSample,
  type WebhookHandlerDecl,
} from '../contracts/index.ts';
import { createClient } from '../http/index.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import type { DeliveryAnswer, DeliveryOptions } from './call-types.ts';
import type { TestServices } from './services.ts';

/** Returns the bytes of a payload that is sent as it is, or undefined for a value that is sent as JSON. */
function bytesOf(payload: unknown): Buffer | undefined {
  if (typeof payload === 'string') return Buffer.from(payload);
  return payload instanceof Uint8Array ? Buffer.from(payload) : undefined;
}

/**
 * Sends deliveries to a real gateway, as an external sender would. Provisions the webhook before the first delivery and
 * signs each delivery.
 */
export function createDeliveries(services: TestServices) {
  const client = createClient({ url: () => services.urlOf('gateway'), peer: 'gateway' });
  const secrets = new Map<string, Promise<string>>();

  async function provision(target: object, asAdmin: { headers: Record<string, string> }): Promise<string> {
    await services.startGateway();
    return (
      await client.call(
        provisionWebhook,
        { body: target as CallInput<typeof provisionWebhook>['body'] },
        asAdmin,
      )
    ).secret;
  }

  return async function deliver(
    pluginId: string,
    { event, auth }: WebhookHandlerDecl,
    payload: unknown,
    { namespaceId = 'default', instanceId, headers = {}, contentType }: DeliveryOptions,
  ): Promise<DeliveryAnswer> {
    if (auth.type === 'custom' && typeof headers !== 'function')
      throw new PlatformError(
        'VALIDATION_ERROR',
        `The webhook "${event}" is authenticated by a validator of the plugin. Pass headers: ({secret, rawBody}) => ({…}).`,
      );
    const target = { pluginId, event, ...(instanceId === undefined ? {} : { instanceId }) };
    const asAdmin = {
      headers: { authorization: `Bearer ${services.token}`, [HEADERS.namespace]: namespaceId },
    };
    const key = JSON.stringify([target, namespaceId]);
    const secret = secrets.get(key) ?? provision(target, asAdmin);
    secrets.set(key, secret);
    const bytes = contentType === undefined ? undefined : bytesOf(payload);
    const rawBody = bytes?.toString() ?? JSON.stringify(payload);
    const signingInput = { secret: await secret, rawBody };
    const sent = typeof headers === 'function' ? headers(signingInput) : headers;
    const content = bytes ? { bytes: bytes.toString('base64') } : { data: payload };
    const body = {
      ...target,
      ...content,
      ...(contentType === undefined ? {} : { contentType }),
      headers: sent,
    };
    return client.call(sendSample, { body: body as CallInput<typeof sendSample>['body'] }, asAdmin);
  };
}
