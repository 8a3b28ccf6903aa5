import { readFile } from 'node:fs/promises';
import { WebhookFixture } from '../contracts/index.ts';
import { messageOf, PlatformError } from '../kit/errors/errors.ts';
import type { DeliveryOptions } from './call-types.ts';

/** Options of a replay. Headers of the fixture can be overridden, and a validator's headers must be given. */
export type ReplayOptions = Pick<DeliveryOptions, 'namespaceId' | 'headers'>;

/** Reads a fixture from a file that `svc webhooks fixture` wrote. Throws VALIDATION_ERROR for any other file. */
export async function readFixture(file: string): Promise<WebhookFixture> {
  try {
    return WebhookFixture.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch (error) {
    throw new PlatformError(
      'VALIDATION_ERROR',
      `${file} is no fixture: ${messageOf(error)}. Save one with \`svc webhooks fixture <delivery>\`.`,
      { details: { file }, cause: error },
    );
  }
}

/** Returns the body of a fixture as it was received, and the options that deliver it. */
export function fixtureDelivery(
  { body, bodyEncoding, headers, instanceId }: WebhookFixture,
  { namespaceId, headers: own }: ReplayOptions,
): { body: Buffer; options: DeliveryOptions } {
  const { 'content-type': contentType = 'application/json', ...sent } = headers;
  return {
    body: Buffer.from(body, bodyEncoding),
    options: {
      contentType,
      ...(namespaceId === undefined ? {} : { namespaceId }),
      ...(instanceId === undefined ? {} : { instanceId }),
      headers: typeof own === 'function' ? (input) => ({ ...sent, ...own(input) }) : { ...sent, ...own },
    },
  };
}
