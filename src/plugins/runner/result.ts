import type { CommandResult } from '../../contracts/index.ts';
import { LIMITS } from '../../contracts/limits.ts';
import { isRecord } from '../../kit/data/is-record.ts';
import { findOwnCostProblem, resultLimitFactor } from '../../kit/data/json-cost.ts';
import { messageOf, RunnerFailure } from './failure.ts';

/**
 * Converts a handler's return value to a CommandResult. An object with a numeric `exitCode` already is a CommandResult.
 * Any other value becomes a `result` with exit code 0. @spec Command result; docs/plugins.md "Handlers"
 */
export function toCommandResult(value: unknown): CommandResult {
  if (typeof value !== 'object' || value === null || typeof (value as CommandResult).exitCode !== 'number') {
    return value === undefined ? { exitCode: 0 } : { exitCode: 0, result: value };
  }
  const { exitCode, result, meta, error } = value as CommandResult;
  if (!Number.isInteger(exitCode)) throw malformed('exitCode must be a whole number');
  if (meta !== undefined && !isRecord(meta)) throw malformed('meta must be an object');
  if (error !== undefined && (!isRecord(error) || typeof error.message !== 'string')) {
    throw malformed('error must be {message, code?, details?} with a string as message');
  }
  return {
    exitCode,
    ...(result === undefined ? {} : { result }),
    ...(meta === undefined ? {} : { meta }),
    ...(error === undefined ? {} : { error }),
  };
}

function malformed(what: string): RunnerFailure {
  return new RunnerFailure('EXECUTION_ERROR', `The handler returned a malformed CommandResult: ${what}.`);
}

/**
 * Serializes the result frame. Throws EXECUTION_ERROR if the result exceeds a limit or JSON cannot represent the
 * result. Some limits grow with `inputChars`, the size of the input.
 */
export function resultFrame(
  executionId: string,
  result: CommandResult,
  maxBytes: number,
  inputChars = 0,
): string {
  const text = toJson(result);
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) {
    throw new RunnerFailure(
      'EXECUTION_ERROR',
      `The handler's result is ${bytes} bytes as JSON; at most ${maxBytes} are allowed. Return less, or a reference to stored data.`,
      { bytes, maxBytes },
    );
  }
  const fault = findOwnCostProblem(text, LIMITS.jsonDepth, resultLimitFactor(inputChars));
  if (fault) {
    throw new RunnerFailure(
      'EXECUTION_ERROR',
      `The handler's result is JSON ${fault}. Return less, or a reference to stored data.`,
    );
  }
  return `{"type":"result","executionId":${JSON.stringify(executionId)},"result":${text}}`;
}

function toJson(result: CommandResult): string {
  const value = result.result as { getReader?: unknown; pipe?: unknown } | null | undefined;
  if (
    typeof value?.getReader === 'function' ||
    typeof value?.pipe === 'function' ||
    value instanceof Response
  ) {
    throw new RunnerFailure(
      'EXECUTION_ERROR',
      'The handler returned a stream or Response; a result must be JSON.',
    );
  }
  try {
    return JSON.stringify(result);
  } catch (error) {
    throw new RunnerFailure(
      'EXECUTION_ERROR',
      `The handler's result cannot be sent as JSON: ${messageOf(error)}`,
      undefined,
      error,
    );
  }
}
