import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { awaitAuthorization } from '../../src/cli/commands/connections/await-authorization.ts';
import { setSecret } from '../../src/contracts/index.ts';
import { PlatformError } from '../../src/kit/errors/errors.ts';
import { entryFile } from '../../src/kit/files/paths.ts';
import { manualClock } from '../../src/kit/time/clock.ts';
import { minutes } from '../../src/kit/time/duration.ts';
import {
  create,
  finish,
  type Place,
  show,
  startPlace,
  tokenOf,
} from '../daemons/gateway/connections/support.ts';
import { tempDir } from '../support/daemon.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { authorizeInBrowser, OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET } from '../support/oauth-provider.ts';
import { SignInClient } from '../support/sign-in-client.ts';
import { userEnvironment } from '../support/user-environment.ts';

const SLOW = { timeout: 60_000 };

/** `svc connections …` in a process of its own, with the client secret on stdin. */
async function start({ gateway }: Place, args: string[], stdin = '') {
  const env = { ...userEnvironment(), SVC_GATEWAY_URL: gateway.url, SVC_TOKEN: ADMIN_TOKEN };
  const child = spawn(process.execPath, [entryFile('cli'), 'connections', ...args], {
    cwd: await tempDir(),
    env,
    stdio: 'pipe',
  });
  onTestFinished(() => void child.kill());
  child.stdin.end(stdin);
  let printed = '';
  child.stderr.on('data', (chunk) => (printed += chunk));
  const stdout = text(child.stdout);
  const code = new Promise<number | null>((resolve) => child.once('close', resolve));
  const link = async (): Promise<string> => {
    await expect.poll(() => printed, { timeout: 20_000 }).toMatch(/\/oauth\/start\/\S+\s+Waiting for .+\n/);
    return /http\S+\/oauth\/start\/\S+/.exec(printed)![0];
  };
  return { link, printed: () => printed, code, stdout };
}

const createArgs = ({ provider }: Place) => [
  ...['create', 'crm', '--issuer', provider.issuer, '--client-id', OAUTH_CLIENT_ID],
  ...['--scopes', 'openid email offline_access items:read', '--params', '{"prompt":"consent"}'],
  '--secret-stdin',
];

test('create prints a link and waits until a person has authorized the connection', SLOW, async () => {
  const place = await startPlace();
  const creating = await start(place, createArgs(place), `${OAUTH_CLIENT_SECRET}\n`);
  const link = await creating.link();
  expect(creating.printed()).toContain('Ctrl-C stops waiting');
  expect((await show(place)).status).toBe('pending');
  expect((await finish(link)).status).toBe(200);
  expect(await creating.code).toBe(0);
  const shown = await creating.stdout;
  expect(shown).toMatch(/status +active/);
  expect(shown).toContain('ada@example.com');
  expect(shown + creating.printed()).not.toContain(OAUTH_CLIENT_SECRET);
  expect((await tokenOf(place.gateway)).accessToken).toBe(place.provider.answers[0]!.access_token);

  // Authorizing again waits for the new authorization, not for the present one.
  place.gateway.clock.advance(1000);
  const again = await start(place, ['authorize', 'crm']);
  await finish(await again.link());
  expect([await again.code, (await again.stdout).includes('active')]).toEqual([0, true]);
});

test('create ends with an error when the person refuses, and names the next command', SLOW, async () => {
  const place = await startPlace();
  const creating = await start(place, createArgs(place), OAUTH_CLIENT_SECRET);
  const browser = new SignInClient();
  await browser.get(await authorizeInBrowser(browser, await creating.link(), ''));
  expect(await creating.code).toBe(1);
  expect(creating.printed() + (await creating.stdout)).toMatch(
    /"crm" was not authorized[\s\S]*refused the authorization[\s\S]*svc connections authorize crm/,
  );
});

test('waiting survives a restart of the gateway, and ends when the link expires', SLOW, async () => {
  const place = await startPlace();
  const link = await create(place);
  const clock = manualClock(link.authorizeUrlExpiresAt - minutes(10));
  let calls = 0;
  const client = {
    call: async () => {
      calls++;
      if (calls === 1) throw new PlatformError('UPSTREAM_UNAVAILABLE', 'The gateway does not answer.');
      clock.advance(minutes(5));
      return show(place);
    },
  };
  const notes: string[] = [];
  const note = (line: string) => void notes.push(line);
  const waiting = awaitAuthorization(link, {
    clock,
    client: client as never,
    ui: { warn: note, note } as never,
  });
  await expect(waiting).rejects.toMatchObject({
    code: 'CONNECTION_NOT_AUTHORIZED',
    message: '"crm" was not authorized. The link has expired after ten minutes.',
    details: { hint: 'svc connections authorize crm' },
  });
  expect(calls).toBe(3);
  expect(notes[0]).toContain(link.authorizeUrl);
});

test('update replaces the client secret from stdin or by a stored secret', SLOW, async () => {
  const place = await startPlace();
  await finish((await create(place)).authorizeUrl);
  const updated = await start(place, ['update', 'crm', '--secret-stdin'], 'a-new-client-secret\n');
  expect([await updated.code, (await updated.stdout).includes('a-new-client-secret')]).toEqual([0, false]);
  const refresh = await start(place, ['refresh', 'crm']);
  expect(await refresh.code).toBe(1);
  expect(refresh.printed() + (await refresh.stdout)).toContain('invalid_client');
  await place.gateway.call(setSecret, {
    params: { name: 'CRM_CLIENT' },
    body: { value: OAUTH_CLIENT_SECRET } as never,
  });
  expect(await (await start(place, ['update', 'crm', '--secret', 'CRM_CLIENT'])).code).toBe(0);
  expect(await (await start(place, ['refresh', 'crm'])).code).toBe(0);
  const nothing = await start(place, ['update', 'crm']);
  expect(await nothing.code).toBe(2);
});
