import { expect, onTestFinished, test } from 'vitest';
import {
  connectSource,
  createSource,
  deleteSource,
  disconnectSource,
  getDelivery,
  getSource,
  grantRole,
  leaseItems,
  listDeliveries,
  listSources,
  pauseSource,
  replayDelivery,
  replaySource,
  resumeSource,
  rotateSource,
  SOURCES_PLUGIN_ID,
  type SourceName,
  updateDestination,
  updateSource,
} from '../../../src/contracts/index.ts';
import {
  ADMIN_TOKEN,
  MEMBER_TOKEN,
  OTHER_TOKEN,
  startGateway,
  type TestGateway,
} from '../../support/gateway.ts';
import { githubSignature, send, sendAsGitHub, startReceiver } from '../../support/source-senders.ts';
import { describeOnStores } from '../../support/stores.ts';

const params = (name: string) => ({ name: name as SourceName });

/** Deliveries of a source or, with `destination`, to one of its destinations, newest first. */
async function deliveriesOf(gateway: TestGateway, destination: string | null = null, token?: string) {
  const query = { pluginId: SOURCES_PLUGIN_ID };
  const { items } = await gateway.call(listDeliveries, { query }, token);
  return items.filter(({ instanceId }) => instanceId === destination);
}

/** Returns the newest delivery to a destination once it has a status. Lets time pass for retries. */
async function settled(gateway: TestGateway, destination: string, status: string) {
  await expect
    .poll(
      async () => {
        gateway.clock.advance(1000);
        return (await deliveriesOf(gateway, destination))[0]?.status;
      },
      { timeout: 20_000 },
    )
    .toBe(status);
  return (await deliveriesOf(gateway, destination))[0]!;
}

const details = (gateway: TestGateway, webhookId: string) =>
  gateway.call(getDelivery, { params: { webhookId } });

describeOnStores('a source', (storeConfig) => {
  async function start(
    config: Record<string, unknown> = {},
    env: Record<string, string> = {},
  ): Promise<TestGateway> {
    const gateway = await startGateway({ config: { ...(await storeConfig()), ...config }, env });
    onTestFinished(() => gateway.close());
    return gateway;
  }

  async function githubSource(gateway: TestGateway, name = 'gh', token?: string) {
    const { url, secret } = await gateway.call(
      createSource,
      { body: { name: name as SourceName, provider: 'github' } },
      token,
    );
    return { url, secret };
  }

  test('forwards the original bytes, headers and signature to a local URL', async () => {
    const gateway = await start();
    const receiver = await startReceiver();
    const { url, secret } = await githubSource(gateway);
    expect(url).toBe(`${gateway.url.replace('127.0.0.1', 'localhost')}/in/default/gh`);
    await gateway.call(connectSource, {
      params: params('gh'),
      body: { forward: `${receiver.url}/hook?a=1` },
    });
    const body = '{"n": 1,  "text":"ä"}';
    const answer = await send(url, body, {
      ...githubSignature(secret, body),
      'x-github-delivery': 'd-1',
      'x-github-event': 'push',
      'x-svc-attempt': '99',
      cookie: 'session=1',
    });
    expect([answer.status, answer.body.status]).toEqual([202, 'accepted']);
    await expect.poll(() => receiver.received.length).toBe(1);
    const [received] = receiver.received;
    expect([received!.method, received!.url, received!.body.toString()]).toEqual(['POST', '/hook?a=1', body]);
    expect(received!.headers).toMatchObject({
      ...githubSignature(secret, Buffer.from(body)),
      'x-github-event': 'push',
      'x-svc-attempt': '1',
      'x-svc-source': 'gh',
      'x-svc-delivery-id': expect.any(String),
    });
    expect(received!.headers.cookie).toBeUndefined();
    await expect.poll(async () => (await deliveriesOf(gateway, 'forward'))[0]?.status).toBe('succeeded');
    const [child] = await deliveriesOf(gateway, 'forward');
    const [parent] = await deliveriesOf(gateway);
    expect([child!.replayOf, parent!.webhookId]).toEqual([answer.body.webhookId, answer.body.webhookId]);
    const shown = await details(gateway, child!.webhookId);
    expect(shown.outcome).toEqual({ result: { status: 200, excerpt: 'thanks' } });
    expect(JSON.stringify(shown)).not.toContain(received!.headers['x-hub-signature-256']);
    expect(JSON.stringify(shown)).not.toContain(':sealed');
  });

  test('refuses a wrong signature, and takes a delivery id once', async () => {
    const gateway = await start();
    const { url, secret } = await githubSource(gateway);
    expect((await sendAsGitHub(url, 'wrong-secret', {}, 'd-1')).status).toBe(401);
    expect((await sendAsGitHub(url, secret, {}, 'd-1')).status).toBe(202);
    expect((await sendAsGitHub(url, secret, {}, 'd-1')).body).toEqual({ status: 'duplicate' });
  });

  test('unknown namespaces, unknown sources and wrong tokens get the same answer', async () => {
    const gateway = await start();
    const made = await gateway.call(createSource, {
      body: { name: 'plain' as SourceName, auth: { type: 'token' } },
    });
    const token = made.url.split('/').at(-1)!;
    expect(token).toMatch(/^[\w-]{43}$/);
    expect((await send(made.url, { n: 1 })).status).toBe(202);
    const base = `${gateway.url}/in`;
    const answers = await Promise.all(
      [
        `${base}/default/plain`,
        `${base}/default/plain/${token.slice(0, -1)}`,
        `${base}/default/plain/${'a'.repeat(43)}`,
        `${base}/default/nothing/${token}`,
        `${base}/default/nothing`,
        `${base}/nowhere/plain/${token}`,
        `${base}/other/plain/${token}`,
      ].map((url) => send(url, { n: 1 })),
    );
    for (const { status, body, headers } of answers) {
      expect([status, body]).toEqual([404, answers[0]!.body]);
      expect([...headers.keys()]).toEqual([...answers[0]!.headers.keys()]);
    }
    expect((await send(`${gateway.url}/webhooks/sources/plain`, {})).body.error.code).toBe(
      'PLUGIN_NOT_FOUND',
    );
    await expect.poll(async () => (await deliveriesOf(gateway))[0]?.status).toBe('succeeded');
    const { webhookId } = (await deliveriesOf(gateway))[0]!;
    const places = [
      await details(gateway, webhookId),
      await gateway.call(listSources),
      await gateway.call(getSource, { params: params('plain') }),
      gateway.logs.lines,
      await (await fetch(`${gateway.url}/metrics`)).text(),
    ];
    await fetch(made.url);
    for (const place of places) expect(JSON.stringify(place)).not.toContain(token);
    expect((await gateway.call(listSources)).items[0]!.url).toMatch(/\/in\/default\/plain\/…$/);

    const rotated = await gateway.call(rotateSource, { params: params('plain'), body: {} });
    expect(rotated.url).not.toBe(made.url);
    expect([(await send(made.url, {})).status, (await send(rotated.url, {})).status]).toEqual([202, 202]);
  });

  test('each destination has its own filter, transform, status and retry', async () => {
    const gateway = await start();
    const [good, bad] = [await startReceiver(), await startReceiver()];
    bad.answer = () => ({ status: 503, body: 'later' });
    const { url, secret } = await githubSource(gateway);
    const connect = (body: Record<string, unknown>) =>
      gateway.call(connectSource, { params: params('gh'), body: body as never });
    await connect({ name: 'big', forward: good.url, filter: 'body.n > 10 && event == "push"' });
    await connect({ name: 'short', forward: good.url, transform: '{"got": body.n, "from": source}' });
    await connect({ name: 'down', forward: bad.url, retry: { maxAttempts: 2, backoff: { initialMs: 20 } } });
    await connect({ name: 'faulty', forward: good.url, filter: 'body.missing.deep == 1' });
    await sendAsGitHub(url, secret, { n: 1 }, 'd-1');
    const down = await settled(gateway, 'down', 'dead');
    expect((await settled(gateway, 'faulty', 'dead')).reason).toMatch(/The filter failed: .*missing/);
    expect(await deliveriesOf(gateway, 'big')).toEqual([]);
    await expect
      .poll(() => good.received.map(({ body }) => body.toString()))
      .toEqual(['{"got":1,"from":"gh"}']);
    await expect
      .poll(async () => (await gateway.call(getSource, { params: params('gh') })).destinations)
      .toMatchObject([
        { name: 'big', counts: { filtered: 1, succeeded: 0 } },
        { name: 'down', counts: { dead: 1 } },
        { name: 'faulty', counts: { dead: 1 } },
        { name: 'short', counts: { succeeded: 1 } },
      ]);
    expect(down).toMatchObject({ attempts: 2, reason: 'EXECUTION_ERROR: The receiver answered 503.' });
    const [parent] = await deliveriesOf(gateway);
    expect((await details(gateway, parent!.webhookId)).outcome).toMatchObject({
      result: { destinations: expect.arrayContaining([{ destination: 'big', filtered: true }]) },
    });
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics).toMatch(/webhook_deliveries_total\{.*event="gh",status="filtered"\} 1/);
  });

  test('a replay fans out again, to all destinations or to one', async () => {
    const gateway = await start();
    const [one, two] = [await startReceiver(), await startReceiver()];
    const { url, secret } = await githubSource(gateway);
    await gateway.call(connectSource, { params: params('gh'), body: { name: 'one', forward: one.url } });
    await gateway.call(connectSource, { params: params('gh'), body: { name: 'two', forward: two.url } });
    const { body } = await sendAsGitHub(url, secret, { n: 1 }, 'd-1');
    await expect.poll(() => [one.received.length, two.received.length]).toEqual([1, 1]);
    const { webhookId } = body;
    const replay = (destination?: string) =>
      gateway.call(replaySource, {
        params: params('gh'),
        body: { webhookId, ...(destination ? { destination } : {}) },
      });
    await expect.poll(async () => (await deliveriesOf(gateway))[0]?.status).toBe('succeeded');
    expect((await replay('two')).replayOf).toBe(webhookId);
    await expect.poll(() => [one.received.length, two.received.length]).toEqual([1, 2]);
    await replay();
    await expect.poll(() => [one.received.length, two.received.length]).toEqual([2, 3]);
    const ids = two.received.map(({ headers }) => headers['x-svc-delivery-id']);
    expect(new Set(ids).size).toBe(3);
    await expect(replay('three')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('a paused destination holds its deliveries and delays no other', async () => {
    const gateway = await start();
    const [open, held] = [await startReceiver(), await startReceiver()];
    const { url, secret } = await githubSource(gateway);
    await gateway.call(connectSource, { params: params('gh'), body: { name: 'open', forward: open.url } });
    await gateway.call(connectSource, { params: params('gh'), body: { name: 'held', forward: held.url } });
    await gateway.call(pauseSource, { params: params('gh'), body: { destination: 'held' } });
    for (let n = 0; n < 5; n++) await sendAsGitHub(url, secret, { n }, `d-${n}`);
    await expect.poll(() => open.received.length).toBe(5);
    expect(held.received).toEqual([]);
    await gateway.call(resumeSource, { params: params('gh'), body: { destination: 'held' } });
    await expect.poll(() => held.received.length).toBe(5);
  });

  test('deliveries of a deleted destination end, and a deleted source is unknown', async () => {
    const gateway = await start();
    const receiver = await startReceiver();
    const { url, secret } = await githubSource(gateway);
    await gateway.call(connectSource, { params: params('gh'), body: { name: 'a', forward: receiver.url } });
    await gateway.call(pauseSource, { params: params('gh'), body: { destination: 'a' } });
    await sendAsGitHub(url, secret, {}, 'd-1');
    await expect.poll(async () => (await deliveriesOf(gateway, 'a'))[0]?.status).toBe('accepted');
    await gateway.call(disconnectSource, { params: { ...params('gh'), destination: 'a' } });
    await expect.poll(async () => (await deliveriesOf(gateway, 'a'))[0]?.status).toBe('failed');
    expect((await deliveriesOf(gateway, 'a'))[0]!.reason).toContain('was deleted');
    await gateway.call(deleteSource, { params: params('gh') });
    expect((await sendAsGitHub(url, secret, {}, 'd-2')).status).toBe(404);
    const again = await githubSource(gateway);
    expect((await gateway.call(getSource, { params: params('gh') })).destinations).toEqual([]);
    expect((await sendAsGitHub(url, secret, {}, 'd-3')).status).toBe(401);
    expect((await sendAsGitHub(again.url, again.secret, {}, 'd-3')).status).toBe(202);
  });

  test('tenants do not see each other, and share no names', async () => {
    const gateway = await start();
    const mine = await githubSource(gateway);
    const theirs = await githubSource(gateway, 'gh', OTHER_TOKEN);
    expect(theirs.url).toContain('/in/other/gh');
    await sendAsGitHub(mine.url, mine.secret, { n: 1 }, 'd-1');
    expect((await sendAsGitHub(theirs.url, mine.secret, { n: 1 }, 'd-1')).status).toBe(401);
    expect((await sendAsGitHub(theirs.url, theirs.secret, { n: 1 }, 'd-1')).status).toBe(202);
    const { webhookId } = (await deliveriesOf(gateway))[0]!;
    const body = { webhookId };
    const replay = gateway.call(replaySource, { params: params('gh'), body }, OTHER_TOKEN);
    await expect(replay).rejects.toMatchObject({ code: 'DELIVERY_NOT_FOUND' });
    await gateway.call(createSource, { body: { name: 'mine' as SourceName, auth: { type: 'token' } } });
    const { items } = await gateway.call(listSources, {}, OTHER_TOKEN);
    expect(items.map(({ name }) => name)).toEqual(['gh']);
    const read = gateway.call(getSource, { params: params('mine') }, OTHER_TOKEN);
    await expect(read).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('only operators reach private addresses and run commands', async () => {
    const gateway = await start({ sources: { forwardAllow: ['localhost'] } });
    const receiver = await startReceiver();
    const { url, secret } = await githubSource(gateway, 'gh', MEMBER_TOKEN);
    const connect = (body: Record<string, unknown>, token: string) =>
      gateway.call(connectSource, { params: params('gh'), body: body as never }, token);
    await expect(connect({ command: 'p/c' }, MEMBER_TOKEN)).rejects.toMatchObject({ code: 'FORBIDDEN' });
    const once = { retry: { maxAttempts: 2, backoff: { initialMs: 1 } } };
    await connect({ name: 'literal', forward: receiver.url, ...once }, MEMBER_TOKEN);
    await connect({ name: 'mapped', forward: 'http://[::ffff:7f00:1]:1/', ...once }, MEMBER_TOKEN);
    const allowed = receiver.url.replace('127.0.0.1', 'localhost');
    await connect({ name: 'allowed', forward: `${allowed}/x`, ...once }, MEMBER_TOKEN);
    await sendAsGitHub(url, secret, {}, 'd-1');
    for (const name of ['literal', 'mapped']) {
      expect((await settled(gateway, name, 'dead')).reason).toContain('a loopback address');
    }
    await expect.poll(() => receiver.received.map((each) => each.url)).toEqual(['/x']);
  });

  test('only operators choose a URL from which the gateway fetches keys', async () => {
    const gateway = await start();
    const auth = { type: 'jwt', jwksUrl: 'https://keys.example/jwks', audience: 'a' };
    const create = (token: string) =>
      gateway.call(createSource, { body: { name: 'tokens' as SourceName, auth } as never }, token);
    await expect(create(MEMBER_TOKEN)).rejects.toMatchObject({ code: 'FORBIDDEN' });
    expect(await create(ADMIN_TOKEN)).toMatchObject({ name: 'tokens' });
    const { url } = await githubSource(gateway, 'gh', MEMBER_TOKEN);
    expect(url).toContain('/gh');
    const change = gateway.call(
      updateSource,
      { params: params('gh'), body: { auth } as never },
      MEMBER_TOKEN,
    );
    await expect(change).rejects.toMatchObject({ code: 'FORBIDDEN' });
  });

  test('a redirect is not followed, 410 ends a delivery, and Retry-After delays it', async () => {
    const gateway = await start();
    const receiver = await startReceiver();
    const { url, secret } = await githubSource(gateway);
    const answers: Record<string, { status: number; headers?: Record<string, string> }> = {
      '/moved': { status: 302, headers: { location: `${receiver.url}/target` } },
      '/gone': { status: 410 },
      '/busy': { status: 429, headers: { 'retry-after': '3600' } },
    };
    receiver.answer = (request) => answers[request.url]!;
    const retry = { maxAttempts: 2, backoff: { initialMs: 1 } };
    for (const name of ['moved', 'gone', 'busy'])
      await gateway.call(connectSource, {
        params: params('gh'),
        body: { name, forward: `${receiver.url}/${name}`, retry },
      });
    await sendAsGitHub(url, secret, {}, 'd-1');
    const busy = await settled(gateway, 'busy', 'retrying');
    expect(busy.nextAttemptAt! - busy.receivedAt).toBeGreaterThan(3_500_000);
    expect((await settled(gateway, 'gone', 'dead')).attempts).toBe(1);
    expect((await settled(gateway, 'moved', 'dead')).attempts).toBe(2);
    expect(receiver.received.map((each) => each.url).sort()).toEqual(['/busy', '/gone', '/moved', '/moved']);
  });

  test('an invalid filter is refused with its position', async () => {
    const gateway = await start();
    await githubSource(gateway);
    const connect = (filter: string) =>
      gateway.call(connectSource, { params: params('gh'), body: { workflow: 'w', filter } });
    await expect(connect('body.n >')).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    const error = await connect('body.n == nothing').catch((thrown) => thrown);
    expect(error.details.issues[0]).toMatchObject({ path: 'body.filter', offset: 10 });
    await expect(connect('body.text.matches("(a+)+$")')).rejects.toThrow('matches() is not available here');
    const large = `[${'1,'.repeat(900)}1].all(x, [${'1,'.repeat(900)}1].all(y, y == x))`;
    await expect(connect(large)).resolves.toMatchObject({ name: 'workflow' });
  });

  test('settings are changed by PATCH, and a new target replaces the old one', async () => {
    const gateway = await start();
    await githubSource(gateway);
    await gateway.call(connectSource, { params: params('gh'), body: { workflow: 'w', filter: 'true' } });
    const target = { ...params('gh'), destination: 'workflow' };
    const changed = await gateway.call(updateDestination, {
      params: target,
      body: { queue: 'q', concurrency: 9 },
    });
    expect(changed).toMatchObject({ queue: 'q', filter: 'true', concurrency: 9 });
    expect(changed.workflow).toBeUndefined();
    const body = { description: 'hello', requestsPerMinute: 5 };
    const source = await gateway.call(updateSource, { params: params('gh'), body });
    expect(source).toMatchObject({ description: 'hello', provider: 'github' });
    const twice = gateway.call(createSource, { body: { name: 'gh' as SourceName, provider: 'github' } });
    await expect(twice).rejects.toMatchObject({ code: 'CONFLICT' });
  });

  test('a refused delivery is replayed after its secret is corrected, with the signature of its sender', async () => {
    const gateway = await start();
    const receiver = await startReceiver();
    const { url } = await githubSource(gateway);
    await gateway.call(connectSource, { params: params('gh'), body: { forward: receiver.url } });
    const secret = 'the secret that the sender really has';
    expect((await sendAsGitHub(url, secret, { n: 1 }, 'd-1')).status).toBe(401);
    await gateway.call(rotateSource, { params: params('gh'), body: { secret } });
    const refused = (await deliveriesOf(gateway)).find(({ status }) => status === 'refused');
    await gateway.call(replayDelivery, { params: { webhookId: refused!.webhookId } });
    await settled(gateway, 'forward', 'succeeded');
    const [{ headers, body }] = receiver.received as [(typeof receiver.received)[0]];
    expect(body.toString()).toBe('{"n":1}');
    expect(headers).toMatchObject(githubSignature(secret, body));
  });

  test('a queue keeps the deliveries', async () => {
    const gateway = await start();
    const { url, secret } = await githubSource(gateway);
    await gateway.call(connectSource, { params: params('gh'), body: { queue: 'jobs' } });
    const { body } = await sendAsGitHub(url, secret, { n: 1 }, 'd-1');
    await expect.poll(async () => (await deliveriesOf(gateway, 'queue'))[0]?.status).toBe('succeeded');
    const lease = { params: { name: 'jobs' }, body: { max: 5 } };
    const { items } = await gateway.call(leaseItems, lease);
    const [child] = await deliveriesOf(gateway, 'queue');
    expect(items).toMatchObject([{ deliveryId: child!.webhookId, attempt: 1, body: { n: 1 } }]);
    const { headers } = items[0]!;
    expect(JSON.stringify(headers)).toContain('x-github-delivery');
    expect(JSON.stringify(headers)).not.toContain('sha256=');
    expect(child!.replayOf).toBe(body.webhookId);
  });

  test('a viewer reads sources and changes none', async () => {
    const gateway = await start();
    await githubSource(gateway);
    const role = { subject: 'host:member', role: 'viewer' } as const;
    await gateway.call(grantRole, { body: { ...role, namespaceId: 'default' as never } });
    const { items } = await gateway.call(listSources, {}, MEMBER_TOKEN);
    expect(items.map(({ name }) => name)).toEqual(['gh']);
    await gateway.call(getSource, { params: params('gh') }, MEMBER_TOKEN);
    const destination = { ...params('gh'), destination: 'a' };
    const webhookId = '0198b2de-7c4e-7d5a-b0d2-5b0f5a0e8f11';
    const source = { name: 'b' as SourceName, provider: 'github' } as const;
    const calls = [
      () => gateway.call(createSource, { body: source }, MEMBER_TOKEN),
      () => gateway.call(updateSource, { params: params('gh'), body: {} }, MEMBER_TOKEN),
      () => gateway.call(rotateSource, { params: params('gh'), body: {} }, MEMBER_TOKEN),
      () => gateway.call(connectSource, { params: params('gh'), body: { queue: 'q' } }, MEMBER_TOKEN),
      () => gateway.call(updateDestination, { params: destination, body: {} }, MEMBER_TOKEN),
      () => gateway.call(disconnectSource, { params: destination }, MEMBER_TOKEN),
      () => gateway.call(pauseSource, { params: params('gh'), body: {} }, MEMBER_TOKEN),
      () => gateway.call(resumeSource, { params: params('gh'), body: {} }, MEMBER_TOKEN),
      () => gateway.call(replaySource, { params: params('gh'), body: { webhookId } }, MEMBER_TOKEN),
      () => gateway.call(deleteSource, { params: params('gh') }, MEMBER_TOKEN),
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'FORBIDDEN' });
  });

  test('the config declares sources, which the API does not change', async () => {
    const receiver = await startReceiver();
    const declared = {
      default: {
        gh: {
          provider: 'github',
          // biome-ignore lint/suspicious/noTemplateCurlyInString: literal config syntax
          secret: '${TEST_SOURCE_SECRET}',
          destinations: { app: { forward: receiver.url } },
        },
      },
    };
    const gateway = await start({ sources: { declared } }, { TEST_SOURCE_SECRET: 'a-secret-of-the-sender' });
    const url = `${gateway.url}/in/default/gh`;
    expect((await sendAsGitHub(url, 'a-secret-of-the-sender', { n: 1 }, 'd-1')).status).toBe(202);
    await expect.poll(() => receiver.received.length).toBe(1);
    const { items } = await gateway.call(listSources);
    expect(items).toMatchObject([{ name: 'gh', declared: true, destinations: [{ name: 'app' }] }]);
    const remove = gateway.call(deleteSource, { params: params('gh') });
    await expect(remove).rejects.toThrow('svc.config.json declares the source gh');
    await expect(githubSource(gateway)).rejects.toMatchObject({ code: 'CONFLICT' });
  });
});
