import { expect, test } from 'vitest';
import { type Hook, parseHooks } from '../../src/cli/commands/webhooks/imported-hooks/hooks-file.ts';
import { importHook } from '../../src/cli/commands/webhooks/imported-hooks/imported-hook.ts';

const MATCH = {
  sha1: {
    match: {
      type: 'payload-hmac-sha1',
      secret: 'mysecret',
      parameter: { source: 'header', name: 'X-Hub-Signature' },
    },
  },
  main: {
    match: { type: 'value', value: 'refs/heads/main', parameter: { source: 'payload', name: 'ref' } },
  },
  ip: { match: { type: 'ip-whitelist', 'ip-range': '104.192.143.0/24 10.0.0.1/32' } },
};

/** Parses one hook, as `svc webhooks import` does. */
function hookOf(hook: object): Hook {
  return parseHooks(
    JSON.stringify([{ id: 'deploy', 'execute-command': '/opt/deploy.sh', ...hook }]),
    'hooks.json',
  )[0]!;
}

const imported = (hook: object) => importHook(hookOf(hook));
const withRule = (rule: object) => imported({ 'trigger-rule': rule });

test('a signature in a rule becomes the authentication, and its secret is not part of the plugin', () => {
  const { declaration, settings, secret } = withRule({ and: [MATCH.sha1, MATCH.main] });
  expect(declaration.auth).toEqual({
    type: 'signature',
    algorithm: 'hmac-sha1',
    signature: { header: 'x-hub-signature', prefix: 'sha1=', encoding: 'hex' },
  });
  expect(secret).toBe('mysecret');
  expect(JSON.stringify({ declaration, settings })).not.toContain('mysecret');
  expect(settings.conditions).toEqual([
    { parameter: { source: 'payload', name: 'ref' }, value: 'refs/heads/main' },
  ]);
});

test('a signature in another header is plain hex, and a note names the prefix', () => {
  const match = {
    ...MATCH.sha1.match,
    type: 'payload-hmac-sha512',
    parameter: { source: 'header', name: 'X-Sig' },
  };
  const { declaration, notes } = withRule({ match });
  expect(declaration.auth).toMatchObject({ algorithm: 'hmac-sha512', signature: { header: 'x-sig' } });
  expect(notes).toEqual([expect.stringContaining('"sha512="')]);
});

test('a secret in a header, the query or the body becomes the authentication', () => {
  const secretIn = (source: string, name: string) =>
    withRule({ match: { type: 'value', value: '42', parameter: { source, name } } });
  expect(secretIn('header', 'X-Gitlab-Token')).toMatchObject({
    declaration: { auth: { type: 'secret', header: 'x-gitlab-token' } },
    secret: '42',
  });
  for (const source of ['url', 'payload'])
    expect(secretIn(source, 'token')).toMatchObject({
      declaration: { auth: { type: 'custom', validator: 'hooks.js#isAllowed' } },
      settings: { token: { source, name: 'token' }, conditions: [] },
      secret: '42',
    });
});

test('a note names each secret that stays in a condition', () => {
  const token = (value: string) => ({
    match: { type: 'value', value, parameter: { source: 'url', name: 'token' } },
  });
  const copied = expect.stringContaining(
    'hooks.json of the plugin contains the value that "token" must have',
  );
  expect(withRule({ and: [MATCH.sha1, token('one')] }).notes).toEqual([copied]);
  expect(withRule({ or: [token('one'), token('two')] }).notes).toEqual([expect.anything(), copied, copied]);
  expect(withRule({ and: [MATCH.sha1, MATCH.main] }).notes).toEqual([]);
});

test('address ranges limit the senders', () => {
  const addresses = ['104.192.143.0/24', '10.0.0.1/32'];
  expect(withRule({ and: [MATCH.sha1, MATCH.ip] }).declaration.auth).toMatchObject({ ipAllow: addresses });
  expect(withRule({ and: [{ or: [MATCH.ip] }, MATCH.sha1] }).declaration.auth).toMatchObject({
    ipAllow: addresses,
  });
  expect(withRule({ and: [MATCH.sha1, { or: [MATCH.ip, MATCH.main] }] }).settings.conditions).toEqual([
    { or: [{ addresses }, expect.objectContaining({ value: 'refs/heads/main' })] },
  ]);
});

test('a hook without proof of the sender needs a secret header', () => {
  const { declaration, notes, secret } = imported({});
  expect([declaration.auth, secret]).toEqual([{ type: 'secret', header: 'x-hook-secret' }, undefined]);
  expect(notes).toEqual([expect.stringContaining('x-hook-secret')]);
});

test.each([
  [{ 'trigger-rule': { or: [MATCH.sha1, MATCH.main] } }, /several signatures/],
  [{ 'trigger-rule': { and: [MATCH.sha1, { not: MATCH.sha1 }] } }, /several signatures/],
  [{ 'trigger-rule': { match: { type: 'scalr-signature', secret: 's' } } }, /scalr-signature/],
  [
    {
      'trigger-rule': {
        match: { type: 'regex', regex: '(?P<a>x)', parameter: { source: 'payload', name: 'a' } },
      },
    },
    /regular expression/,
  ],
  [{ 'http-methods': ['GET', ' put'] }, /only GET and PUT/],
  [{ 'incoming-payload-content-type': 'application/xml' }, /XML/],
  [{ 'pass-arguments-to-command': [{ source: 'moon', name: 'x' }] }, /unknown source "moon"/],
  [{ id: '../up' }, /one URL segment/],
])('%j cannot be carried over', (hook, reason) => {
  expect(() => imported(hook)).toThrow(reason);
});

test('what behaves differently is noted', () => {
  const { notes } = imported({
    'http-methods': ['post', 'get'],
    'response-message': 'ok',
    'keep-file-environment': true,
    'trigger-rule': MATCH.sha1,
  });
  expect(notes).toEqual([
    expect.stringContaining('GET is not accepted'),
    expect.stringContaining('keep-file-environment'),
    expect.stringContaining('response-message'),
  ]);
});

test('flags of a regular expression are kept', () => {
  const { settings } = withRule({
    and: [
      MATCH.sha1,
      { match: { type: 'regex', regex: '(?i)^v\\d', parameter: { source: 'payload', name: 'tag' } } },
    ],
  });
  expect(settings.conditions).toEqual([
    { parameter: { source: 'payload', name: 'tag' }, regex: { source: '^v\\d', flags: 'i' } },
  ]);
});

test('the plugin may use the files of its command, and never the root folder', () => {
  expect(imported({ 'command-working-directory': '/srv/app' })).toMatchObject({
    reads: ['/opt/deploy.sh', '/srv/app'],
    writes: ['/srv/app'],
  });
  expect(imported({ 'execute-command': '/usr/bin/make', 'command-working-directory': '/' })).toMatchObject({
    reads: [],
    writes: [],
  });
});

test.each([
  ['[{"id": "a", "execute-command": "{{ .Command }}"}]', /Go template/],
  ['[{"id": "a"}]', /hook 1, execute-command/],
  ['[]', /is no file of hooks/],
  ['{"id": "a"}', /is no file of hooks/],
  ['[{"id":"a","execute-command":"x"},{"id":"a","execute-command":"y"}]', /two hooks have the id "a"/],
  ['- id: [', /is no file of hooks/],
])('%s is refused', (text, message) => {
  expect(() => parseHooks(text, 'hooks.json')).toThrow(message);
});

test('YAML is read as well', () => {
  expect(parseHooks('- id: a\n  execute-command: /bin/true\n', 'hooks.yaml')).toMatchObject([{ id: 'a' }]);
});
