import { expect, test } from 'vitest';
import { type CallerAccess, HEADERS, type Role } from '../../../../src/contracts/index.ts';
import { createAdmins } from '../../../../src/daemons/gateway/domain/identity/admins.ts';
import {
  createRequestHeaders,
  type ForwardedCaller,
} from '../../../../src/daemons/gateway/proxy/request-headers.ts';

const headersFor = createRequestHeaders('a-secret-of-the-platform', createAdmins(['boss']));

type Roles = Record<string, Role>;
const withRoles = (roles: Roles): CallerAccess => ({ roles: new Map(Object.entries(roles)), scopes: null });

/** Returns the value of the header that names an administrator. */
function administrator(caller: Partial<ForwardedCaller>): string | undefined {
  const headers = headersFor({
    rawHeaders: [HEADERS.administrator, 'true'],
    connection: undefined,
    caller: { hostId: 'boss', namespaceId: 'ns1', kind: 'static', ...caller },
    requestId: 'req_1',
    traceId: 'trace_1',
    traceparent: '00-trace_1-span_1-01',
    forwardedFor: '127.0.0.1',
    forwardedHost: 'localhost',
    forwardedProto: 'http',
    contentLength: null,
  });
  const index = headers.indexOf(HEADERS.administrator);
  return index < 0 ? undefined : headers[index + 1];
}

test('a host of gateway.admins is an administrator without any role', () => {
  expect(administrator({})).toBe('true');
  expect(administrator({ hostId: 'member' })).toBeUndefined();
  expect(administrator({ access: { roles: null, scopes: ['runs:write'] } })).toBeUndefined();
  expect(administrator({ kind: 'container' })).toBeUndefined();
  expect(administrator({ kind: 'anonymous' })).toBeUndefined();
});

test.each<[Roles, string | undefined]>([
  [{ '*': 'admin' }, 'true'],
  [{ '*': 'admin', ns1: 'viewer' }, 'true'],
  [{ '*': 'viewer', ns1: 'admin' }, undefined],
  [{ '*': 'editor', ns1: 'admin' }, undefined],
  [{ '*': 'editor' }, undefined],
  [{ ns1: 'admin' }, undefined],
  [{}, undefined],
])('with the roles %j the header of an administrator is %s', (roles, expected) => {
  expect(administrator({ access: withRoles(roles) })).toBe(expected);
  // A person whose role for all namespaces is in the config, and one whose roles are given by `svc roles`.
  const person = { hostId: 'oidc:ada', kind: 'oidc' } as const;
  const access = { ...withRoles(roles), actsEverywhere: '*' in roles };
  expect(administrator({ ...person, access })).toBe(expected);
  expect(administrator({ ...person, access: { ...access, actsEverywhere: false } })).toBeUndefined();
});
