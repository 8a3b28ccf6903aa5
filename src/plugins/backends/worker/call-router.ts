import { PlatformError, toRemoteError } from '../../../kit/errors/errors.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { PlatformCallContext, PlatformServices } from '../../execution.ts';
import type { FrameError, ReplyFrame } from '../../runner/protocol.ts';

/**
 * Maximum platform calls in flight per plugin process. The limit bounds the memory that plugin code can occupy in this
 * service.
 */
const MAX_IN_FLIGHT = 64;

/** A call of a platform service by plugin code, read from a validated `call` frame. */
export interface PlatformCall {
  callId: number;
  service: string;
  method: string;
  args: unknown[];
}

export interface CallRouter {
  handle(call: PlatformCall, context: PlatformCallContext): void;
}

/**
 * Creates a router that answers the platform calls of one process. Service and method names come from plugin code, so
 * inherited properties such as `constructor` are rejected.
 */
export function createCallRouter(deps: {
  services: PlatformServices;
  logger: Logger;
  reply(frame: ReplyFrame): void;
}): CallRouter {
  const { services, logger, reply } = deps;
  let inFlight = 0;

  async function answer(
    { service, method, args }: PlatformCall,
    context: PlatformCallContext,
  ): Promise<unknown> {
    // Analytics events are exempt because handlers do not wait for them, and another limit bounds their rate.
    if (inFlight > MAX_IN_FLIGHT && service !== 'analytics') {
      throw new PlatformError(
        'SERVICE_UNAVAILABLE',
        `The plugin has more than ${MAX_IN_FLIGHT} platform calls in flight; await some before making more.`,
      );
    }
    const found = Object.hasOwn(services, service) ? services[service]! : {};
    const run = Object.hasOwn(found, method) ? found[method] : undefined;
    if (!run)
      throw new PlatformError('NOT_IMPLEMENTED', `The platform has no service "${service}.${method}".`);
    return run(context, args);
  }

  function refusal(
    thrown: unknown,
    call: PlatformCall,
    { request, signal }: PlatformCallContext,
  ): FrameError {
    const error = toRemoteError(thrown);
    // Cancelling a call often causes internal errors. Such errors are not logged, because no caller waits for a result.
    if (error.code === 'INTERNAL_ERROR' && !signal.aborted) {
      logger.error(`${call.service}.${call.method} failed`, {
        pluginId: request.plugin.id,
        requestId: request.requestId,
        tenantId: request.tenantId,
        error: thrown,
      });
    }
    return { code: error.code, message: error.message, details: error.details };
  }
  return {
    handle(call, context) {
      const { callId } = call;
      inFlight++;
      answer(call, context)
        .then(
          (value) => reply({ type: 'reply', callId, ok: true, value }),
          (thrown) => reply({ type: 'reply', callId, ok: false, error: refusal(thrown, call, context) }),
        )
        .finally(() => {
          inFlight--;
        });
    },
  };
}
