import {
  announceScheduler,
  HEADERS,
  noticeDeliveries,
  runDeliveryAttempt,
} from '../../../../../contracts/index.ts';
import { createLongCallClient, parseReply, serviceHeaders } from '../../../../../http/index.ts';
import type { AttemptEnd } from './attempts.ts';
import type { AttemptRequest } from './requested-attempts.ts';

const ANNOUNCE_TIMEOUT_MS = 5000;

/** Client with which the scheduling gateway calls the other gateways. */
export interface GatewayCalls {
  /** Runs an attempt on another gateway. Resolves with undefined if that gateway refused to run the attempt. */
  attempt(url: string, request: AttemptRequest, signal: AbortSignal): Promise<AttemptEnd | undefined>;
  /**
   * Announces the current scheduler to another gateway. Returns the ids of deliveries whose attempts run on that
   * gateway.
   */
  announce(url: string, scheduler: number): Promise<readonly string[]>;
  /** Notifies the gateway that schedules deliveries of new deliveries. */
  notify(url: string): Promise<void>;
  close(): Promise<void>;
}

export function createGatewayCalls(internalSecret: string): GatewayCalls {
  const client = createLongCallClient('gateway');
  const headers = { [HEADERS.internalSecret]: internalSecret, ...serviceHeaders(internalSecret) };
  return {
    async attempt(url, request, signal) {
      // A handler can run for hours, so the call has no timeout. `signal` aborts the call when the other gateway ends.
      const call = { headers, body: request, signal, idleTimeoutMs: 0 };
      const reply = await client.post(url, runDeliveryAttempt.path, call);
      const body = runDeliveryAttempt.reply.parse(parseReply(await reply.text(), 'gateway'));
      if (body.isRefused) return undefined;
      return { nextAttemptAt: body.nextAttemptAt ?? undefined, isUnread: body.isUnread };
    },
    async announce(url, scheduler) {
      const call = { headers, body: { scheduler }, idleTimeoutMs: ANNOUNCE_TIMEOUT_MS };
      const reply = await client.post(url, announceScheduler.path, call);
      return announceScheduler.reply.parse(parseReply(await reply.text(), 'gateway')).running;
    },
    async notify(url) {
      const reply = await client.post(url, noticeDeliveries.path, {
        headers,
        body: {},
        idleTimeoutMs: ANNOUNCE_TIMEOUT_MS,
      });
      await reply.text();
    },
    close: client.close,
  };
}
