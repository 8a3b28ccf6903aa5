import { LIMITS } from '../../contracts/limits.ts';
import { findOwnCostProblem } from '../../kit/data/json-cost.ts';
import type { Channel } from './channel.ts';
import { PlatformCallError, RunnerFailure } from './failure.ts';
import type { ReplyFrame, RunnerLimits } from './protocol.ts';

interface Waiting {
  executionId: string;
  resolve(value: unknown): void;
  reject(error: Error): void;
}

export interface PlatformCalls {
  /** Calls a method of a platform service. Rejects with PlatformCallError if the call fails. */
  call(executionId: string, service: string, method: string, args: unknown[]): Promise<unknown>;
  settle(frame: ReplyFrame): void;
  /** Drops pending calls of a finished execution. */
  forget(executionId: string): void;
}

/**
 * Creates the client for calls to platform services. The client assigns each reply to its call. `isLive` returns
 * whether an execution is running.
 */
export function createPlatformCalls(
  channel: Channel,
  limits: RunnerLimits,
  isLive: (executionId: string) => boolean,
): PlatformCalls {
  const waiting = new Map<number, Waiting>();
  let lastId = 0;

  return {
    async call(executionId, service, method, args) {
      if (!isLive(executionId)) {
        throw new RunnerFailure(
          'EXECUTION_ERROR',
          `ctx.${service} was used after its handler had finished; await every call before returning.`,
        );
      }
      const callId = ++lastId;
      const text = JSON.stringify({ type: 'call', callId, executionId, service, method, args });
      if (Buffer.byteLength(text) > limits.frameBytes) {
        throw new PlatformCallError({
          code: 'PAYLOAD_TOO_LARGE',
          message: `The arguments of ctx.${service} are larger than ${limits.frameBytes} bytes as JSON.`,
        });
      }
      const fault = findOwnCostProblem(text, LIMITS.jsonDepth);
      if (fault) {
        throw new PlatformCallError({
          code: 'PAYLOAD_TOO_LARGE',
          message: `The arguments of ctx.${service} are JSON ${fault}.`,
        });
      }
      return new Promise((resolve, reject) => {
        waiting.set(callId, { executionId, resolve, reject });
        channel.sendText(text);
      });
    },
    settle(frame) {
      const call = waiting.get(frame.callId);
      waiting.delete(frame.callId);
      if (frame.ok) call?.resolve(frame.value);
      else call?.reject(new PlatformCallError(frame.error));
    },
    forget(executionId) {
      for (const [callId, call] of waiting) if (call.executionId === executionId) waiting.delete(callId);
    },
  };
}
