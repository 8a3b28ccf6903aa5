import type { CommandResult } from '../../../../../contracts/index.ts';
import type { JsonValue } from '../../../../../kit/data/json-value.ts';
import { MASKED_VALUE } from '../../../../../kit/data/recorded-headers.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { NewDelivery } from '../../../../../store/ports/index.ts';
import { shownHeaders } from '../../webhooks/receive/request-head.ts';
import { DestinationFailure, type HandOverTo } from './destination-call.ts';

/** Starts a run in the namespace of the delivery. A second call with the delivery returns the same run. */
export type StartWorkflow = (
  delivery: NewDelivery,
  workflowId: string,
  input: JsonValue,
) => Promise<{ runId: string }>;

/** Runs a command of a plugin in the namespace of the delivery. */
export type RunCommand = (
  delivery: NewDelivery,
  command: { pluginId: string; commandId: string },
  input: JsonValue,
  timeoutMs: number,
) => Promise<CommandResult>;

/** Adds an item to a queue. A second item with the same id is ignored. */
export type PutInQueue = (item: {
  namespaceId: string;
  queue: string;
  id: string;
  deliveryId: string;
  headers: string;
  body: Uint8Array;
  orderKey: string | null;
  receivedAt: number;
}) => Promise<unknown>;

/** Starts a workflow with the payload. Only a fault of the payload is final, because the workflow can be added later. */
export function startWorkflow(start: StartWorkflow): HandOverTo {
  return async ({ delivery, settings, value }) => {
    try {
      return await start(delivery, settings.workflow!, value);
    } catch (error) {
      if (!(error instanceof PlatformError) || error.code !== 'VALIDATION_ERROR') throw error;
      throw new DestinationFailure(error.message, { isFinal: true, details: error.details });
    }
  };
}

export function runCommand(run: RunCommand): HandOverTo {
  return async ({ delivery, settings, value, timeoutMs }) => {
    const command = settings.command!;
    const slash = command.lastIndexOf('/');
    const named = { pluginId: command.slice(0, slash), commandId: command.slice(slash + 1) };
    const { exitCode, result, error } = await run(delivery, named, value, timeoutMs);
    if (exitCode === 0) return { result: result ?? null };
    throw new DestinationFailure(
      error ? `${error.code}: ${error.message}` : `The command ended with exit code ${exitCode}.`,
      { details: { exitCode } },
    );
  };
}

/** Puts the delivery in a queue, with its readable headers: the queue is not encrypted. */
export function putInQueue(put: PutInQueue): HandOverTo {
  return async ({ delivery, settings, body, isTransformed }) => {
    const headers = shownHeaders(delivery.headers).filter(([, value]) => value !== MASKED_VALUE);
    const { webhookId, namespaceId, orderKey, receivedAt } = delivery;
    const kept = isTransformed ? withoutContentType(headers) : headers;
    await put({
      ...{ namespaceId, queue: settings.queue!, id: webhookId, deliveryId: webhookId },
      ...{ headers: JSON.stringify(kept), body, orderKey, receivedAt },
    });
    return { queue: settings.queue! };
  };
}

function withoutContentType(headers: Array<[string, string]>): Array<[string, string]> {
  const kept = headers.filter(([name]) => name.toLowerCase() !== 'content-type');
  return [...kept, ['content-type', 'application/json']];
}
