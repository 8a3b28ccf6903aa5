import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { activeState } from '../../../../src/daemons/gateway/domain/connections/connection-states.ts';
import { ProviderClient } from '../../../../src/daemons/gateway/domain/connections/provider/provider-client.ts';
import { resolveSettings } from '../../../../src/daemons/gateway/domain/connections/provider/resolve-settings.ts';
import { OutgoingClient } from '../../../../src/daemons/outgoing/outgoing-client.ts';
import type { Resolve } from '../../../../src/plugins/services/resolve.ts';
import { atEnd } from '../../../support/at-end.ts';
import { startOddProvider } from '../../../support/odd-provider.ts';

const CALLBACK = 'https://svc.example.com/oauth/callback';
const CHECKS = { state: 'the-state', verifier: 'v'.repeat(43) };
const SECRET = 'a-client-secret-of-a-provider';

/** A client at a provider of the catalogue, whose host is a stand-in on loopback. */
async function start(provider: 'github' | 'slack') {
  const host = { github: 'github.com', slack: 'slack.com' }[provider];
  const standIn = await startOddProvider(host);
  const client = new ProviderClient({ outgoing: standIn.outgoing, mayBePrivate: false });
  const settings = await resolveSettings(
    client,
    { provider, clientId: 'client-1' },
    { secretName: null, hasSecret: true },
  );
  const access = { settings, clientSecret: SECRET };
  const redeem = () =>
    client.redeem(access, new URL(`${CALLBACK}?code=the-code&state=${CHECKS.state}`), CHECKS);
  return { ...standIn, settings, redeem, refresh: (token: string) => client.refresh(access, token) };
}

const failed = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('GitHub', () => {
  const TOKENS = {
    access_token: 'ghu_access',
    expires_in: 28800,
    refresh_token: 'ghr_refresh',
    refresh_token_expires_in: 15811200,
    scope: '',
    token_type: 'bearer',
  };

  test('gives tokens as JSON, because the request accepts it, with the secret in the body', async () => {
    const { next, redeem, refresh, requests } = await start('github');
    next({ fields: TOKENS });
    const granted = { accessToken: 'ghu_access', refreshToken: 'ghr_refresh', expiresInSeconds: 28800 };
    expect(await redeem()).toMatchObject(granted);
    expect(requests[0]).toMatchObject({
      path: '/login/oauth/access_token',
      accept: expect.stringContaining('application/json'),
      authorization: undefined,
    });
    expect(Object.fromEntries(requests[0]!.form)).toEqual({
      grant_type: 'authorization_code',
      code: 'the-code',
      redirect_uri: CALLBACK,
      code_verifier: CHECKS.verifier,
      client_id: 'client-1',
      client_secret: SECRET,
    });
    next({ fields: { ...TOKENS, access_token: 'ghu_2', refresh_token: 'ghr_2' } });
    expect(await refresh('ghr_refresh')).toMatchObject({ accessToken: 'ghu_2', refreshToken: 'ghr_2' });
    expect(requests[1]!.form.get('refresh_token')).toBe('ghr_refresh');
  });

  test('a token of an OAuth App does not expire, and its scopes are separated by commas', async () => {
    const { next, redeem, settings } = await start('github');
    next({ fields: { access_token: 'gho_1', scope: 'repo,gist', token_type: 'bearer' } });
    const state = activeState(await redeem(), settings, 1000);
    expect(state).toMatchObject({ expiresAt: null, refreshAt: null, grantedScopes: '["repo","gist"]' });
  });

  test('a server that ignores Accept answers with a form', async () => {
    const { respond, redeem } = await start('github');
    respond((_request, response) =>
      response
        .writeHead(200, { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' })
        .end('access_token=gho_16C7e42F&scope=repo%2Cgist&token_type=bearer&expires_in=3600'),
    );
    expect(await redeem()).toMatchObject({
      accessToken: 'gho_16C7e42F',
      scope: 'repo,gist',
      expiresInSeconds: 3600,
    });
  });

  test.each([
    [
      'application/json',
      '{"error":"bad_refresh_token","error_description":"The refresh token ghr_x is incorrect"}',
    ],
    [
      'application/x-www-form-urlencoded',
      'error=bad_refresh_token&error_description=The+refresh+token+ghr_x',
    ],
  ])('an error in %s with status 200 ends the authorization, without the text', async (type, text) => {
    const { respond, refresh } = await start('github');
    respond((_request, response) => response.writeHead(200, { 'content-type': type }).end(text));
    const error = await failed(refresh('ghr_x'));
    expect(error).toMatchObject({ code: 'bad_refresh_token', isFinal: true });
    expect((error as Error).message).not.toContain('ghr_x');
  });

  test('a wrong client secret is an error that a new secret mends', async () => {
    const { next, refresh } = await start('github');
    next({ fields: { error: 'incorrect_client_credentials', error_description: SECRET } });
    expect(await failed(refresh('ghr_x'))).toMatchObject({
      code: 'incorrect_client_credentials',
      isFinal: false,
      message: expect.not.stringContaining(SECRET),
    });
  });
});

describe('Slack', () => {
  const BOT = {
    ok: true,
    access_token: 'xoxb-bot',
    token_type: 'bot',
    scope: 'commands,chat:write',
    bot_user_id: 'U0KRQLJ9H',
    app_id: 'A0KRD7HC3',
    team: { name: 'Slack Softball Team', id: 'T9TK3CUKW' },
    enterprise: null,
    authed_user: { id: 'U1234', scope: 'search:read', access_token: 'xoxp-user', token_type: 'user' },
  };

  test('gives the token of the bot, and names the workspace', async () => {
    const { next, redeem, settings } = await start('slack');
    next({ fields: BOT });
    const granted = await redeem();
    expect(granted).toMatchObject({ accessToken: 'xoxb-bot', account: 'Slack Softball Team' });
    expect(activeState(granted, settings, 0)).toMatchObject({
      expiresAt: null,
      grantedScopes: '["commands","chat:write"]',
    });
  });

  test('with user scopes only, the token is that of the user', async () => {
    const { next, redeem } = await start('slack');
    const { access_token: _, token_type: __, scope: ___, ...rest } = BOT;
    next({ fields: rest });
    expect(await redeem()).toMatchObject({ accessToken: 'xoxp-user', scope: 'search:read' });
  });

  test('with token rotation, each refresh replaces both tokens', async () => {
    const { next, redeem, refresh } = await start('slack');
    const rotating = { ...BOT, access_token: 'xoxe.xoxb-1', refresh_token: 'xoxe-1', expires_in: 43200 };
    next(
      { fields: rotating },
      { fields: { ...rotating, access_token: 'xoxe.xoxb-2', refresh_token: 'xoxe-2' } },
    );
    expect(await redeem()).toMatchObject({ refreshToken: 'xoxe-1', expiresInSeconds: 43200 });
    expect(await refresh('xoxe-1')).toMatchObject({ accessToken: 'xoxe.xoxb-2', refreshToken: 'xoxe-2' });
  });

  test.each([
    ['invalid_refresh_token', true],
    ['token_expired', true],
    ['ratelimited', false],
    ['internal_error', false],
  ])('"ok": false with %s is an error (final: %s)', async (code, isFinal) => {
    const { next, refresh } = await start('slack');
    next({ fields: { ok: false, error: code } });
    expect(await failed(refresh('xoxe-1'))).toMatchObject({ code, isFinal });
  });

  test('"ok": true without a token gives none', async () => {
    const { next, redeem } = await start('slack');
    next({ fields: { ok: true, team: {} } });
    expect(await failed(redeem())).toMatchObject({ code: 'invalid_answer' });
  });
});

describe('credentials in the header', () => {
  const basic = async (settings: Parameters<typeof resolveSettings>[1], host: string, secret: string) => {
    const { outgoing, next, requests } = await startOddProvider(host);
    const client = new ProviderClient({ outgoing, mayBePrivate: false });
    const resolved = await resolveSettings(client, settings, { secretName: null, hasSecret: true });
    next({ fields: { access_token: 'a', token_type: 'bearer' } });
    await client.refresh({ settings: resolved, clientSecret: secret }, 'r');
    return Buffer.from(requests[0]!.authorization!.slice('Basic '.length), 'base64').toString();
  };
  const endpoints = { authorizationUrl: 'https://id.example/auth', tokenUrl: 'https://id.example/token' };

  test('are sent as they are to a provider of the catalogue, as its own client does', async () => {
    expect(await basic({ provider: 'notion', clientId: 'a-b' }, 'api.notion.com', 'secret_a+b/c%')).toBe(
      'a-b:secret_a+b/c%',
    );
  });

  test('are encoded as in a form for other servers, without characters that need no encoding', async () => {
    const sent = await basic({ endpoints, clientId: 'a b' }, 'id.example', 'x-_.~:+%&=!é');
    expect(sent).toBe('a+b:x-_.~%3A%2B%25%26%3D%21%C3%A9');
    const decoded = (text: string) => new URLSearchParams(`v=${text}`).get('v');
    expect(sent.split(':').map(decoded)).toEqual(['a b', 'x-_.~:+%&=!é']);
  });
});

describe('a provider that misbehaves', () => {
  test('scopes that no scope can be are left out', async () => {
    const { next, redeem, settings } = await start('github');
    const scope = `repo \u001b[31mred "quoted" ${'x'.repeat(300)} gist`;
    next({ fields: { access_token: 'gho_1', scope, token_type: 'bearer' } });
    expect(activeState(await redeem(), settings, 0).grantedScopes).toBe('["repo","gist"]');
  });

  test.each<[string, (response: ServerResponse) => void]>([
    ['does not answer', () => {}],
    ['sends its answer too slowly', (response) => void response.writeHead(200).write('{"access_')],
  ])('one that %s ends with a timeout, which is repeated', async (_case, behave) => {
    const standIn = await startOddProvider('github.com');
    standIn.respond((_request, response) => behave(response));
    const client = new ProviderClient({
      mayBePrivate: false,
      outgoing: { send: (request) => standIn.outgoing.send({ ...request, timeoutMs: 300 }) },
    });
    const settings = await resolveSettings(
      client,
      { provider: 'github', clientId: 'c' },
      { secretName: null, hasSecret: true },
    );
    const error = await failed(client.refresh({ settings, clientSecret: SECRET }, 'ghr_1'));
    expect(error).toMatchObject({ code: 'timeout', isFinal: false });
    // A repeated request would send a refresh token twice, so the client itself never repeats one.
    await sleep(500);
    expect(standIn.requests).toHaveLength(1);
  });

  test('a redirect is refused, and the secret is sent to no other server', async () => {
    const target = await startOddProvider('github.com');
    const { respond, refresh } = await start('github');
    for (const status of [301, 302, 303, 307, 308]) {
      respond((_request, response) =>
        response.writeHead(status, { location: 'https://github.com/elsewhere' }).end(),
      );
      expect(await failed(refresh('ghr_1'))).toMatchObject({ code: 'redirected' });
    }
    expect(target.requests).toEqual([]);
  });

  test.each([
    ['127.0.0.1'],
    ['10.0.0.5'],
    ['169.254.169.254'],
    ['100.100.100.200'],
    ['::1'],
    ['fd00:ec2::254'],
    ['::ffff:127.0.0.1'],
  ])(
    'a name that leads to %s at the connection is refused, also beside a public address',
    async (address) => {
      for (const addresses of [[address], ['93.184.216.34', address]]) {
        const resolve: Resolve = (_host, _options, callback) =>
          callback(
            null,
            addresses.map((one) => ({ address: one, family: one.includes(':') ? 6 : 4 })),
          );
        const outgoing = new OutgoingClient({ allowedHosts: [], setting: 'outgoing.allow', resolve });
        atEnd(() => outgoing.close());
        const client = new ProviderClient({ outgoing, mayBePrivate: false });
        const settings = await resolveSettings(
          client,
          {
            endpoints: {
              authorizationUrl: 'https://rebinding.example/authorize',
              tokenUrl: 'https://rebinding.example/token',
            },
            clientId: 'c',
          },
          { secretName: null, hasSecret: true },
        );
        const error = await failed(client.refresh({ settings, clientSecret: SECRET }, 'r'));
        expect(error).toMatchObject({ code: 'address_refused' });
      }
    },
  );
});
