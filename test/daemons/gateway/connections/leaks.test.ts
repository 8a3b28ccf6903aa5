import { expect, test } from 'vitest';
import { getConnection, listConnections, refreshConnection } from '../../../../src/contracts/index.ts';
import { authorizeInBrowser, OAUTH_CLIENT_SECRET } from '../../../support/oauth-provider.ts';
import { SignInClient } from '../../../support/sign-in-client.ts';
import { textsIn } from '../../../support/texts-in.ts';
import { create, NAME, startPlace, tokenOf } from './support.ts';

/** Forms in which a secret could be recorded. Base64 is searched without its first and last characters, which depend on the position. */
function formsOf(secret: string): string[] {
  const base64 = [0, 1, 2].map((shift) =>
    Buffer.from('x'.repeat(shift) + secret)
      .toString('base64url')
      .slice(4, -4),
  );
  return [secret, encodeURIComponent(secret), Buffer.from(secret).toString('hex'), ...base64];
}

test('no file, log line, answer or error contains a token, a client secret or a code', async () => {
  const place = await startPlace();
  const { gateway, provider } = place;
  const created = await create(place);
  const browser = new SignInClient();
  const callback = new URL(await authorizeInBrowser(browser, created.authorizeUrl));
  const page = await (await browser.get(callback.href)).text();
  await tokenOf(gateway);
  await gateway.call(refreshConnection, { params: { name: NAME } });
  // A provider that repeats what it was sent in its texts.
  provider.tamper((request, response) => {
    const sent = `${String((request as never as { body: string }).body)} ${request.headers.authorization}`;
    response
      .writeHead(500, { 'content-type': 'application/json' })
      .end(JSON.stringify({ error: 'server_error', error_description: sent, error_uri: sent }));
    return true;
  });
  const failure = await gateway
    .call(refreshConnection, { params: { name: NAME } })
    .catch((error: unknown) => error as Error & { details: object });
  expect(failure).toMatchObject({ code: 'CONNECTION_UNAVAILABLE', details: { reason: 'server_error' } });
  const shown = [
    await gateway.call(getConnection, { params: { name: NAME } }),
    await gateway.call(listConnections, {}),
    created,
    { ...failure, message: (failure as Error).message },
    page,
    gateway.logs.lines,
  ];
  const texts = [JSON.stringify(shown), ...(await textsIn(gateway.dataDir))];
  expect(texts.length).toBeGreaterThan(2);
  const secrets = [
    OAUTH_CLIENT_SECRET,
    callback.searchParams.get('code')!,
    callback.searchParams.get('state')!,
    provider.requests[0]!.form.get('code_verifier')!,
    ...provider.answers.flatMap(({ access_token, refresh_token, id_token }) => [
      access_token!,
      refresh_token!,
      id_token!,
    ]),
  ];
  expect(secrets.every((secret) => secret.length > 20)).toBe(true);
  const found = secrets.flatMap((secret, n) =>
    formsOf(secret)
      .filter((form) => texts.some((text) => text.includes(form)))
      .map(() => n),
  );
  expect(found).toEqual([]);
});
