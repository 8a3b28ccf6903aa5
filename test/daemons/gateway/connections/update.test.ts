import { expect, test } from 'vitest';
import {
  authorizeConnection,
  listAudit,
  refreshConnection,
  setSecret,
  updateConnection,
} from '../../../../src/contracts/index.ts';
import { OTHER_TOKEN } from '../../../support/gateway.ts';
import { OAUTH_CLIENT_SECRET } from '../../../support/oauth-provider.ts';
import { SignInClient } from '../../../support/sign-in-client.ts';
import { connect, finish, NAME, type Place, SCOPES, show, startPlace, tokenOf } from './support.ts';

const params = { name: NAME };
const update = ({ gateway }: Place, body: Record<string, unknown>, token?: string) =>
  gateway.call(updateConnection, { params, body: body as never }, token);
const refresh = ({ gateway }: Place) => gateway.call(refreshConnection, { params });

test('a replaced client secret is used from the next refresh on, and the token stays in use', async () => {
  const place = await startPlace();
  await connect(place);
  const { gateway, provider } = place;
  const first = await tokenOf(gateway);
  const wrong = 'a-client-secret-that-the-provider-does-not-know';
  expect(await update(place, { clientSecret: wrong })).toMatchObject({
    status: 'active',
    clientSecret: 'stored',
    expiresAt: first.expiresAt,
  });
  // A wrong secret costs neither the refresh token nor the present access token.
  await expect(refresh(place)).rejects.toMatchObject({
    code: 'CONNECTION_UNAVAILABLE',
    details: { reason: 'invalid_client' },
  });
  expect(await tokenOf(gateway)).toEqual(first);
  expect(await show(place)).toMatchObject({ status: 'active', lastError: { code: 'invalid_client' } });
  expect(await update(place, { clientSecret: OAUTH_CLIENT_SECRET })).toMatchObject({ status: 'active' });
  expect(await refresh(place)).toMatchObject({ status: 'active', lastError: null });
  const sent = provider.refreshes().map(({ authorization }) => atob(authorization!.slice('Basic '.length)));
  expect(sent.map((text) => text.split(':')[1])).toEqual([wrong, OAUTH_CLIENT_SECRET]);
  const logged = JSON.stringify(gateway.logs.lines);
  expect([logged.includes(wrong), logged.includes(OAUTH_CLIENT_SECRET)]).toEqual([false, false]);
  const { items } = await gateway.call(listAudit, { query: { action: 'connection.update' } });
  expect(items).toHaveLength(2);
  expect(items[0]).toMatchObject({ object: `connection:${NAME}`, outcome: 'succeeded' });
  expect(JSON.stringify(items)).not.toContain(OAUTH_CLIENT_SECRET);
});

test('the client secret can move to a stored secret, whose new versions count at once', async () => {
  const place = await startPlace();
  await connect(place);
  const { gateway } = place;
  await expect(update(place, { clientSecret: { secret: 'CRM_CLIENT' } })).rejects.toMatchObject({
    code: 'NOT_FOUND',
  });
  const set = (value: string) =>
    gateway.call(setSecret, { params: { name: 'CRM_CLIENT' }, body: { value } as never });
  await set('a-wrong-client-secret');
  const changed = await update(place, { clientSecret: { secret: 'CRM_CLIENT' } });
  expect(changed.clientSecret).toEqual({ secret: 'CRM_CLIENT' });
  await expect(refresh(place)).rejects.toMatchObject({ details: { reason: 'invalid_client' } });
  await set(OAUTH_CLIENT_SECRET);
  expect(await refresh(place)).toMatchObject({ status: 'active' });
});

test('scopes and parameters take effect with the next authorization', async () => {
  const place = await startPlace();
  const { grantedScopes } = await connect(place);
  const scopes = [...SCOPES, 'items:write'];
  const changed = await update(place, {
    scopes,
    authorizationParams: { prompt: 'consent', hd: 'x.example' },
  });
  expect(changed).toMatchObject({ status: 'active', scopes, grantedScopes });
  // Other settings stay.
  expect(changed).toMatchObject({ clientSecret: 'stored', issuer: place.provider.issuer });
  expect(await refresh(place)).toMatchObject({ grantedScopes });
  const { authorizeUrl } = await place.gateway.call(authorizeConnection, { params });
  const begun = await new SignInClient().get(`${authorizeUrl}/continue`);
  const { searchParams } = new URL(begun.headers.get('location')!);
  expect([searchParams.get('scope'), searchParams.get('hd')]).toEqual([scopes.join(' '), 'x.example']);
  await finish(authorizeUrl);
  expect((await show(place)).grantedScopes).toEqual(expect.arrayContaining(scopes));
});

test('null makes the client public, and a new secret makes it confidential again', async () => {
  const place = await startPlace();
  await connect(place);
  expect(await update(place, { clientSecret: null })).toMatchObject({ clientSecret: null });
  await expect(refresh(place)).rejects.toMatchObject({ details: { reason: 'invalid_client' } });
  expect(place.provider.requests.at(-1)!.authorization).toBeUndefined();
  await update(place, { clientSecret: OAUTH_CLIENT_SECRET });
  expect(await refresh(place)).toMatchObject({ status: 'active' });
  await update(place, { clientAuth: 'post' });
  await refresh(place).catch(() => {});
  const { form, authorization } = place.provider.requests.at(-1)!;
  expect([form.get('client_secret'), authorization]).toEqual([OAUTH_CLIENT_SECRET, undefined]);
});

test('endpoints, client and name cannot change, and no other namespace reaches the connection', async () => {
  const place = await startPlace();
  await connect(place);
  for (const body of [
    {},
    { clientId: 'other' },
    { endpoints: { issuer: 'https://attacker.example' } },
    { tokenUrl: 'https://attacker.example/token' },
    { name: 'other' },
    { authorizationParams: { redirect_uri: 'https://attacker.example' } },
    { scopes: ['two scopes'] },
    { clientSecret: '' },
  ])
    await expect(update(place, body)).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
  await expect(update(place, { scopes: [] }, OTHER_TOKEN)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  expect((await show(place)).scopes).toEqual(SCOPES);
});

test('concurrent changes are all applied', async () => {
  const place = await startPlace();
  await connect(place);
  await Promise.all([
    update(place, { scopes: ['openid'] }),
    update(place, { authorizationParams: { a: '1' } }),
    update(place, { clientSecret: OAUTH_CLIENT_SECRET }),
  ]);
  const { authorizeUrl, scopes } = await place.gateway.call(authorizeConnection, { params });
  expect(scopes).toEqual(['openid']);
  const begun = await new SignInClient().get(`${authorizeUrl}/continue`);
  expect(new URL(begun.headers.get('location')!).searchParams.get('a')).toBe('1');
});
