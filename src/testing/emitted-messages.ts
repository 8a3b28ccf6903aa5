import { getMessage, HEADERS, listMessages } from '../contracts/index.ts';
import { createClient } from '../http/index.ts';
import type { CallerOptions } from './call-types.ts';
import type { EmittedRecord } from './host-types.ts';
import type { TestServices } from './services.ts';

const PAGE = 200;

/** Returns a function that reads the messages that handlers have emitted, oldest first. */
export function emittedMessages(
  services: TestServices,
): (options?: Pick<CallerOptions, 'tenantId'>) => Promise<EmittedRecord[]> {
  const client = createClient({ url: () => services.urlOf('gateway'), peer: 'gateway' });
  return async ({ tenantId = 'default' } = {}) => {
    await services.startGateway();
    const headers = { authorization: `Bearer ${services.token}`, [HEADERS.namespace]: tenantId };
    const ids: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const query = { limit: PAGE, ...(cursor ? { cursor } : {}) };
      const page = await client.call(listMessages, { query }, { headers });
      ids.push(...page.items.map(({ id }) => id));
      cursor = page.nextCursor;
    }
    const messages: EmittedRecord[] = [];
    for (const id of ids.toReversed()) {
      const found = await client.call(getMessage, { params: { id } }, { headers });
      const { type, data, application } = found;
      messages.push({ id, type, data, application });
    }
    return messages;
  };
}
