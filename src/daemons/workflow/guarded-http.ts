import { LIMITS } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { days } from '../../kit/time/duration.ts';
import { createFetchService } from '../../plugins/services/fetch.ts';
import type { HttpCall } from './domain/steps/kinds/http.ts';

/**
 * Returns the fetch function for `http` steps. The network restrictions are the same as for `fetch` in plugins.
 * `allowed` lists the private hosts that steps are allowed to call.
 */
export function guardedHttp(allowed: string[], clock: Clock): HttpCall {
  const { request } = createFetchService({
    clock,
    timeoutMs: days(1),
    maxResponseBytes: LIMITS.stepOutputChars,
    privateHosts: allowed,
  });
  const permissions = { network: ['*', ...allowed], env: [], invoke: [] };
  return async (sent, { tenantId, signal }) => {
    const context = { request: { plugin: { id: `http of ${tenantId}` }, tenantId, permissions }, signal };
    try {
      return await request(context, [sent]);
    } catch (error) {
      throw error instanceof PlatformError && error.code === 'PERMISSION_DENIED' ? refusal(error) : error;
    }
  };
}

/**
 * Returns the error for a blocked request. The message refers to the config setting `workflow.httpAllow`, because
 * `http` steps have no manifest that lists allowed hosts.
 */
function refusal({ details }: PlatformError): PlatformError {
  const { host, address, kind } = details;
  const isNever = kind === 'link-local' || kind === 'metadata';
  const remedy = isNever
    ? 'No entry of workflow.httpAllow allows that.'
    : `List "${host}" under workflow.httpAllow of the config to allow it.`;
  return new PlatformError(
    'PERMISSION_DENIED',
    `The step may not call ${host}: ${host === address ? 'it is' : `it leads to ${address},`} a ${kind} address. ${remedy}`,
    { details: { ...details, permission: 'workflow.httpAllow' } },
  );
}
