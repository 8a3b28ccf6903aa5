import type { Caller } from '../../../contracts/index.ts';
import { sendRawError } from '../../../http/index.ts';
import { toPlatformError } from '../../../kit/errors.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { LimitHeaders, LimitRequests } from '../domain/request-limits.ts';
import type { Forward } from '../proxy/forward.ts';
import { account, type ProxiedCall } from '../proxy/proxied-call.ts';
import { actingNamespace } from './acting-namespace.ts';
import { countedOf } from './counted.ts';

export interface ProxyStepsServices {
  forward: Forward;
  limitRequests: LimitRequests | null;
  admins: Admins;
}

/** Limits and forwards a call of `caller`; answers what goes wrong. */
export type Proceed = (call: ProxiedCall, caller: Caller) => void;

/** What follows once it is known who calls: at once, but where several processes have to be asked about a limit. */
export function createProceed({ limitRequests, admins, forward }: ProxyStepsServices): Proceed {
  function pass(call: ProxiedCall, caller: Caller, limits: LimitHeaders | null): void {
    const acting = actingNamespace(call.request, caller, admins);
    forward(call, acting, joined(call.corsHeaders, limits));
  }
  return (call, caller) => {
    call.caller = caller;
    try {
      const limits = limitRequests?.(countedOf(call.request, caller, call.client.ip)) ?? null;
      if (limits instanceof Promise)
        limits.then((known) => pass(call, caller, known)).catch((error) => refuse(call, error));
      else pass(call, caller, limits);
    } catch (error) {
      refuse(call, error);
    }
  };
}

export function refuse(call: ProxiedCall, thrown: unknown): void {
  const { kit, requestId, traceId, response, corsHeaders } = call;
  const error = toPlatformError(thrown);
  if (error.status >= 500) {
    const cause = error.cause ?? error;
    kit.logger.error(`A proxied call failed: ${error.message}`, { requestId, traceId, error: cause });
  }
  sendRawError(response, error, requestId, corsHeaders);
  account(call, error.status);
}

function joined(left: readonly string[] | null, right: readonly string[] | null): readonly string[] | null {
  return left && right ? [...left, ...right] : (left ?? right);
}
