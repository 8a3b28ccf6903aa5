import { codeOf, PlatformError } from '../../kit/errors/errors.ts';

/** Messages for SQLSTATE classes and system codes of failures that an operator can fix. The first match applies. */
const FAULTS: Array<[codes: RegExp, says: (server: string) => string]> = [
  [/^28/, (server) => `PostgreSQL at ${server} rejected the user or password. Check both in store.url.`],
  [
    /^3D000$/,
    (server) => `The database at ${server} does not exist. Create it with \`createdb\`, or change store.url.`,
  ],
  [
    /^42501$/,
    (server) => `The user in store.url lacks a privilege at ${server}. Make it the owner of the database.`,
  ],
  [
    /^53300$/,
    (server) => `PostgreSQL at ${server} has no free connection. Raise max_connections of the server.`,
  ],
  [
    /^(?:53100|58030)$/,
    (server) => `PostgreSQL at ${server} cannot write to its disk. Free disk space on that machine.`,
  ],
  [
    /^25006$/,
    (server) =>
      `PostgreSQL at ${server} is read-only, as standbys are. Point store.url to the primary, or promote this server.`,
  ],
  [
    /^(?:08|57P0[1-5]|ECONN|EPIPE|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|ENOENT|EACCES)/,
    (server) => `PostgreSQL at ${server} cannot be reached. Start the server, or check store.url.`,
  ],
];

/** Matches messages of lost connections, which `pg` reports without a code. */
const LOST_CONNECTION =
  /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Query read timeout/;

/** Translates failures that an operator can fix into STORE_ERROR. Returns other errors unchanged. */
export function postgresError(server: string, thrown: unknown): unknown {
  if (thrown instanceof PlatformError) return thrown;
  const code = codeOf(thrown) ?? (isLostConnection(thrown) ? 'ECONNRESET' : undefined);
  const fault = code === undefined ? undefined : FAULTS.find(([codes]) => codes.test(code));
  if (!fault) return thrown;
  return new PlatformError('STORE_ERROR', fault[1](server), {
    details: { server, reason: code },
    cause: thrown,
  });
}

function isLostConnection(thrown: unknown): boolean {
  return thrown instanceof Error && LOST_CONNECTION.test(thrown.message);
}

/**
 * Returns whether the error is a serialization failure or a deadlock. After both errors, the transaction can be
 * repeated.
 */
export function isRepeatable(thrown: unknown): boolean {
  return /^(?:40001|40P01)$/.test(codeOf(thrown) ?? '');
}

export function isUniqueViolation(thrown: unknown): boolean {
  return codeOf(thrown) === '23505';
}
