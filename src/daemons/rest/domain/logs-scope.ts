import type { Caller } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { TimeRange } from '../../../store/ports/telemetry.ts';

/**
 * Returns the tenant whose records the caller is allowed to see. Returns undefined if an administrator requests all
 * tenants. Throws FORBIDDEN if another caller requests a different tenant. @spec docs/observability.md "Logs"
 */
export function visibleTenant(
  { hostId, namespaceId }: Caller,
  asked: string | undefined,
  admins: readonly string[],
): string | undefined {
  if (admins.includes(hostId)) return asked;
  if (asked !== undefined && asked !== namespaceId) {
    throw new PlatformError('FORBIDDEN', 'Only administrators may see the records of another namespace.');
  }
  return namespaceId;
}

/** Parses the bounds of a time range. Throws VALIDATION_ERROR, which names the invalid bound. */
export function timeRange({ from, to }: { from?: string | undefined; to?: string | undefined }): TimeRange {
  return {
    ...(from === undefined ? {} : { from: timeOf('from', from) }),
    ...(to === undefined ? {} : { to: timeOf('to', to) }),
  };
}

function timeOf(name: string, text: string): number {
  const time = /^\d+$/.test(text) ? Number(text) : Date.parse(text);
  if (Number.isSafeInteger(time)) return time;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `${name} is not a time: use epoch milliseconds or ISO 8601, such as 2030-01-31T12:00:00Z.`,
    { details: { issues: [{ path: `query.${name}`, message: 'must be epoch milliseconds or ISO 8601' }] } },
  );
}

/** Returns the listed query parameters that are set, without conversion. */
export function given<Name extends string>(
  query: { readonly [key in Name]?: string | undefined },
  names: readonly Name[],
): { [key in Name]?: string } {
  const entries = names.filter((name) => query[name] !== undefined).map((name) => [name, query[name]]);
  return Object.fromEntries(entries) as { [key in Name]?: string };
}
