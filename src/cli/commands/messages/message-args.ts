import { z } from 'zod';
import { ApplicationId, EndpointId, EventType, MessageId } from '../../../contracts/index.ts';
import { parseSince } from '../logs/filter.ts';

export const messageArg = MessageId.describe('id of the message');
export const endpointFlag = EndpointId.optional().describe('only this endpoint');

/** Flags that select messages. */
export const filterFlags = {
  type: EventType.optional().describe('only this event type'),
  application: ApplicationId.optional().describe('only this application'),
  endpoint: endpointFlag,
  since: z.string().optional().describe('start: 30s, 10m, 2h, 1d ago, or a time'),
  until: z.string().optional().describe('end: like --since'),
};

/** Returns the filter of the request that the flags set. */
export function filterOf(
  { type, application, endpoint, since, until }: z.output<z.ZodObject<typeof filterFlags>>,
  now: number,
) {
  return {
    ...(type === undefined ? {} : { type }),
    ...(application === undefined ? {} : { application }),
    ...(endpoint === undefined ? {} : { endpointId: endpoint }),
    ...(since === undefined ? {} : { since: parseSince(since, now) }),
    ...(until === undefined ? {} : { until: parseSince(until, now, '--until') }),
  };
}
