import { type AccessRule, ALL_NAMESPACES, type Caller, includesRole } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import { roleIn } from './access-rights.ts';

/** The call for which access is checked. Refusals are logged with this data. */
export interface CheckedCall {
  method: string;
  /** Pattern of the route. A path could contain secrets. */
  route: string;
  requestId: string;
  traceId: string;
}

/** Throws FORBIDDEN if the caller's role or scopes do not allow the call, and logs the refusal. */
export function requireAccess(caller: Caller, rule: AccessRule, call: CheckedCall, logger: Logger): void {
  if (!caller.access) return;
  const refusal = refusalOf(caller, rule);
  if (!refusal) return;
  const { hostId, namespaceId } = caller;
  const { method, route, requestId, traceId } = call;
  logger.diagnostic(
    {
      domain: 'auth',
      event: 'auth.forbidden',
      level: 'warn',
      reasonCode: refusal.reasonCode,
      message: `${method} ${route} by "${hostId}" was refused: ${refusal.error.message}`,
      outcome: 'refused',
      evidence: { hostId, namespaceId },
    },
    { requestId, traceId },
  );
  throw refusal.error;
}

/** Returns whether the caller's role and scopes allow calls with this rule. */
export function allowsAccess(caller: Caller, rule: AccessRule): boolean {
  return refusalOf(caller, rule) === undefined;
}

interface Refusal {
  reasonCode: 'SCOPE_MISSING' | 'ROLE_MISSING';
  error: PlatformError;
}

function refusalOf({ access, namespaceId }: Caller, rule: AccessRule): Refusal | undefined {
  const { needs, scope, isGlobal = false } = rule;
  if (!access || needs === 'open' || needs === 'caller') return undefined;
  const { roles, scopes } = access;
  if (scopes && (scope === undefined || !scopes.includes(scope))) return scopeMissing(scope, scopes);
  if (needs === 'service') {
    const message = 'Only services of the platform may make this call.';
    return { reasonCode: 'ROLE_MISSING', error: new PlatformError('FORBIDDEN', message) };
  }
  if (!roles) return undefined;
  const neededIn = isGlobal ? ALL_NAMESPACES : namespaceId;
  const role = roleIn(roles, neededIn);
  if (includesRole(role, needs)) return undefined;
  const place = isGlobal ? 'for all namespaces' : `in the namespace "${namespaceId}"`;
  return {
    reasonCode: 'ROLE_MISSING',
    error: new PlatformError(
      'FORBIDDEN',
      `This call needs the role ${needs} ${place}; the caller has ${role === null ? 'none' : `the role ${role}`} there.`,
      { details: { neededRole: needs, role, namespaceId: neededIn } },
    ),
  };
}

function scopeMissing(scope: string | undefined, scopes: readonly string[]): Refusal {
  const message =
    scope === undefined
      ? 'A client with scopes may not make this call.'
      : `This call needs the scope ${scope}, which the client does not have.`;
  return {
    reasonCode: 'SCOPE_MISSING',
    error: new PlatformError('FORBIDDEN', message, {
      details: { neededScope: scope ?? null, scopes: [...scopes] },
    }),
  };
}
