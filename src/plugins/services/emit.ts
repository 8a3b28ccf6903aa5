import { z } from 'zod';
import {
  type CallInput,
  EmitFields,
  type EmittedMessage,
  EventType,
  type emitMessage,
} from '../../contracts/index.ts';
import type { PlatformCallContext, PlatformService } from '../execution.ts';
import { parsedArgument } from './arguments.ts';
import { type CallScope, callScope, requirePlatform } from './call-scope.ts';
import { NAME_CHARS, ownKey } from './start-options.ts';

type Body = NonNullable<CallInput<typeof emitMessage>['body']>;

/** Gateway methods that `ctx.emit` uses. */
export interface EmitAccess {
  /** Stores a message of a plugin in the namespace of the scope's tenant. */
  emit(scope: CallScope, pluginId: string, body: Body): Promise<EmittedMessage>;
}

const EmitOptions = z.strictObject(EmitFields);

/**
 * Creates `ctx.emit`. Throws PERMISSION_DENIED if the manifest does not request the service or does not declare the
 * type, VALIDATION_ERROR if the data does not match the schema of the type, and errors of the gateway.
 */
export function createEmitService(messages: EmitAccess): PlatformService {
  return {
    async emit(context, [type, data, options, place]) {
      const { request } = context;
      requirePlatform(request, 'emit');
      const { idempotencyKey, application } = parsedArgument(EmitOptions, options ?? {}, 'options');
      const asked = parsedArgument(EventType, type, 'the type');
      const isOwn = idempotencyKey !== undefined;
      const key = isOwn ? `own ${idempotencyKey}` : stepKey(context, place, application);
      return messages.emit(callScope(context), request.plugin.id, {
        type: asked,
        data: (data ?? null) as Body['data'],
        ...(application === undefined ? {} : { application }),
        // A retried step can emit other data, such as a new time. The first message counts.
        keepsFirst: !isOwn,
        ...ownKey(request.plugin.id, `event ${asked}`, key),
      });
    },
  };
}

/**
 * Returns the default idempotency key of a call in a run: the run, the step, the application and the place of the call.
 * A retry of the step then stores its messages once. Returns undefined for calls outside of runs.
 */
function stepKey(
  { request: { host, hostContext } }: PlatformCallContext,
  place: unknown,
  application: string | undefined,
): string | undefined {
  const { runId, stepId } = hostContext;
  if ((host !== 'workflow' && host !== 'job') || typeof runId !== 'string') return undefined;
  const step = typeof stepId === 'string' ? stepId : '';
  return `run ${JSON.stringify([runId, step, String(place).slice(0, NAME_CHARS), application ?? null])}`;
}
