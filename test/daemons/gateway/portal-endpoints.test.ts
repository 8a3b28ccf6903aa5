import { expect, test } from 'vitest';
import {
  type CallInput,
  createEndpoint,
  createPortalLink,
  deleteEndpoint,
  type Endpoint,
  getEndpoint,
  getMessage,
  listAudit,
  listEndpointAttempts,
  listEndpoints,
  listMessageAttempts,
  listMessages,
  publishMessage,
  type ReplyOf,
  replayEndpoint,
  replayMessage,
  replayMessages,
  rotateEndpoint,
  testEndpoint,
  updateEndpoint,
} from '../../../src/contracts/index.ts';
import { seconds } from '../../../src/kit/time/duration.ts';
import { OTHER_TOKEN, startGateway } from '../../support/gateway.ts';
import { startReceiver, withStatus } from '../../support/message-receiver.ts';

/** A gateway with an endpoint and a message in three applications and in another namespace, and a link for one. */
async function world() {
  const gateway = await startGateway({ config: { outgoing: { allow: ['127.0.0.1'] } } });
  const receiver = await startReceiver();
  const link = await gateway.call(createPortalLink, { body: { application: 'mine' } });
  const token = new URLSearchParams(new URL(link.url).hash.slice(1)).get('token')!;
  const make = async (application: string | undefined, as?: string) => {
    const of = application === undefined ? {} : { application };
    const { id } = await gateway.call(createEndpoint, { body: { url: receiver.url, ...of } }, as);
    const message = await gateway.call(publishMessage, { body: { type: 'a.b', data: {}, ...of } }, as);
    await expect.poll(() => receiver.ids()).toContain(message.id);
    return { endpoint: id, message: message.id };
  };
  const mine = await make('mine');
  const others = [await make('theirs'), await make(undefined), await make('mine', OTHER_TOKEN)];
  const call = <E extends Endpoint>(endpoint: E, input: CallInput<E>): Promise<ReplyOf<E>> =>
    gateway.call(endpoint, input, token);
  return { gateway, receiver, mine, others, call };
}

test('a link shows and manages the endpoints and messages of its application', async () => {
  const { gateway, receiver, mine, call } = await world();
  const { items } = await call(listEndpoints, {});
  expect(items.map(({ id }) => id)).toEqual([mine.endpoint]);
  const created = await call(createEndpoint, { body: { url: `${receiver.url}/new`, types: ['a.*'] } });
  expect(created).toMatchObject({ application: 'mine', secret: expect.stringMatching(/^whsec_/) });
  const params = { id: created.id };
  expect(await call(updateEndpoint, { params, body: { description: 'x' } })).toMatchObject({
    description: 'x',
  });
  expect((await call(rotateEndpoint, { params })).secret).not.toBe(created.secret);
  expect(await call(testEndpoint, { params })).toMatchObject({ outcome: 'succeeded' });
  expect((await call(listEndpointAttempts, { params })).items).toHaveLength(1);
  expect((await call(listMessages, {})).items.map(({ id }) => id)).toContain(mine.message);
  expect((await call(getMessage, { params: { id: mine.message } })).endpoints).toHaveLength(1);
  expect((await call(listMessageAttempts, { params: { id: mine.message } })).items).toHaveLength(1);
  await expect
    .poll(() => call(replayMessage, { params: { id: mine.message }, body: {} }).then(({ items }) => items))
    .toEqual([{ messageId: mine.message, endpointId: mine.endpoint }]);
  await call(replayEndpoint, { params: { id: mine.endpoint }, body: {} });
  await call(deleteEndpoint, { params });
  const { items: entries } = await gateway.call(listAudit, {});
  const own = entries.filter(({ actor }) => actor === 'portal:mine');
  expect(own.map(({ action }) => action).toSorted()).toEqual([
    'endpoint.create',
    'endpoint.delete',
    'endpoint.rotate',
    'endpoint.test',
    'endpoint.update',
    'message.replay',
    'message.replay',
  ]);
  expect(own[0]).toMatchObject({ actorKind: 'portal', role: 'editor', namespaceId: 'default' });
});

test('endpoints and messages of other applications and namespaces do not exist for a link', async () => {
  const { mine, others, call } = await world();
  for (const { endpoint, message } of others) {
    const params = { id: endpoint };
    const refused = [
      call(getEndpoint, { params }),
      call(updateEndpoint, { params, body: { description: 'x' } }),
      call(deleteEndpoint, { params }),
      call(rotateEndpoint, { params }),
      call(testEndpoint, { params }),
      call(listEndpointAttempts, { params }),
      call(replayEndpoint, { params, body: { status: 'all' } }),
      call(getMessage, { params: { id: message } }),
      call(listMessageAttempts, { params: { id: message } }),
      call(replayMessage, { params: { id: message }, body: {} }),
      call(replayMessage, { params: { id: mine.message }, body: { endpointId: endpoint } }),
      call(replayMessage, { params: { id: message }, body: { endpointId: mine.endpoint } }),
    ];
    const codes = (await Promise.allSettled(refused)).map((one) =>
      one.status === 'rejected' ? one.reason.code : one.status,
    );
    expect(codes).toEqual(refused.map(() => 'NOT_FOUND'));
    expect((await call(listMessages, { query: { endpointId: endpoint } })).items).toEqual([]);
  }
});

test('the application of the link wins over the one of a call', async () => {
  const { gateway, receiver, mine, others, call } = await world();
  const listed = await call(listEndpoints, { query: { application: 'theirs' } });
  expect(listed.items.map(({ id }) => id)).toEqual([mine.endpoint]);
  const messages = await call(listMessages, { query: { application: 'theirs' } });
  expect(messages.items.map(({ id }) => id)).toEqual([mine.message]);
  for (const application of ['theirs', null]) {
    const created = await call(createEndpoint, { body: { url: receiver.url, application } });
    expect(created.application).toBe('mine');
    const moved = await call(updateEndpoint, { params: { id: mine.endpoint }, body: { application } });
    expect(moved.application).toBe('mine');
  }
  const kept = await gateway.call(getEndpoint, { params: { id: others[0]!.endpoint } });
  expect(kept.application).toBe('theirs');
});

test('a link sends no message of its own and replays no others', async () => {
  const { call } = await world();
  const publish = call(publishMessage, { body: { type: 'a.b', data: {}, application: 'mine' } });
  await expect(publish).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
  const many = call(replayMessages, { body: { status: 'all' } });
  await expect(many).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
});

test('a message is not replayed to an endpoint of another application, not even by an operator', async () => {
  const { gateway, mine, others } = await world();
  const { endpoint } = others[0]!;
  const replay = gateway.call(replayMessage, {
    params: { id: mine.message },
    body: { endpointId: endpoint },
  });
  await expect(replay).rejects.toMatchObject({ code: 'CONFLICT' });
});

test('an endpoint that was moved to the application of a link shows and gets nothing of its former one', async () => {
  const { gateway, receiver, others, call } = await world();
  const params = { id: others[0]!.endpoint };
  receiver.answer(withStatus(500));
  const waiting = await gateway.call(publishMessage, {
    body: { type: 'a.b', data: 'of theirs', application: 'theirs' },
  });
  const delivery = async () => (await gateway.call(getMessage, { params: { id: waiting.id } })).endpoints[0];
  await expect.poll(delivery).toMatchObject({ status: 'retrying' });

  await gateway.call(updateEndpoint, { params, body: { application: 'mine' } });
  receiver.answer(withStatus(200));
  expect((await call(listEndpointAttempts, { params })).items).toEqual([]);
  expect((await call(listMessages, { query: { endpointId: params.id } })).items).toEqual([]);
  const replayed = await gateway.call(replayMessage, { params: { id: others[0]!.message }, body: {} });
  expect(replayed).toEqual({ items: [], skipped: 1 });
  const all = await gateway.call(replayEndpoint, { params, body: { status: 'all' } });
  expect(all.items).toEqual([]);

  // A user of the link may now choose the URL, so the message that waits is not sent.
  await call(updateEndpoint, { params, body: { url: `${receiver.url}/mine` } });
  gateway.clock.advance(seconds(6));
  await expect.poll(delivery).toMatchObject({
    ...{ status: 'cancelled', lastError: 'The endpoint was moved to another application' },
    ...{ attempts: 1, lastStatus: 500 },
  });
  const attempts = await gateway.call(listMessageAttempts, { params: { id: waiting.id } });
  expect(attempts.items).toMatchObject([{ number: 1, responseStatus: 500 }]);
  const own = await gateway.call(publishMessage, { body: { type: 'a.b', data: {}, application: 'mine' } });
  const paths = () => receiver.received.filter(({ id }) => id === own.id).map(({ path }) => path);
  await expect.poll(() => paths().toSorted()).toEqual(['/hook', '/hook/mine']);
  expect(receiver.received.filter(({ path }) => path === '/hook/mine')).toHaveLength(1);
  await expect
    .poll(async () => (await call(listEndpointAttempts, { params })).items.map(({ messageId }) => messageId))
    .toEqual([own.id]);
});

test('private addresses are refused for users of a link, even if the config allows them for operators', async () => {
  const gateway = await startGateway({ config: { outgoing: { allowPrivateAddresses: true } } });
  const receiver = await startReceiver();
  const link = await gateway.call(createPortalLink, { body: { application: 'mine' } });
  const token = new URLSearchParams(new URL(link.url).hash.slice(1)).get('token')!;
  const call = <E extends Endpoint>(endpoint: E, input: CallInput<E>): Promise<ReplyOf<E>> =>
    gateway.call(endpoint, input, token);
  const denied = { code: 'PERMISSION_DENIED' };
  await expect(call(createEndpoint, { body: { url: receiver.url } })).rejects.toMatchObject(denied);

  // A name is resolved on each connection.
  const { id } = await call(createEndpoint, { body: { url: `http://localhost:${receiver.port}/` } });
  const params = { id };
  expect(await call(testEndpoint, { params })).toMatchObject({ outcome: 'failed', responseStatus: null });
  expect(await gateway.call(testEndpoint, { params })).toMatchObject({ outcome: 'failed' });
  expect(receiver.received).toEqual([]);
  // An operator who sends the URL of the user again does not vouch for it.
  await gateway.call(updateEndpoint, { params, body: { url: `http://localhost:${receiver.port}/` } });
  expect(await gateway.call(testEndpoint, { params })).toMatchObject({ outcome: 'failed' });

  // An operator may set the URL, and a user of the link may not set it back.
  await gateway.call(updateEndpoint, { params, body: { url: receiver.url } });
  expect(await call(testEndpoint, { params })).toMatchObject({ outcome: 'succeeded' });
  await call(updateEndpoint, { params, body: { description: 'x' } });
  expect(await call(testEndpoint, { params })).toMatchObject({ outcome: 'succeeded' });
  const back = call(updateEndpoint, { params, body: { url: `${receiver.url}/other` } });
  await expect(back).rejects.toMatchObject(denied);
  await call(updateEndpoint, { params, body: { url: `http://localhost:${receiver.port}/` } });
  expect(await call(testEndpoint, { params })).toMatchObject({ outcome: 'failed' });
});

test('the address rules hold for endpoints of links, and reserved headers are refused', async () => {
  const gateway = await startGateway();
  const link = await gateway.call(createPortalLink, { body: { application: 'mine' } });
  const token = new URLSearchParams(new URL(link.url).hash.slice(1)).get('token')!;
  const create = (body: { url: string; headers?: Record<string, string> }) =>
    gateway.call(createEndpoint, { body }, token).then(
      ({ id }) => id,
      ({ code }) => code,
    );
  for (const url of [
    'http://127.0.0.1/',
    'http://169.254.169.254/latest',
    'http://[::1]:8080/',
    'https://a.example:22/',
  ])
    expect([url, await create({ url })]).toEqual([url, 'PERMISSION_DENIED']);
  for (const url of ['ftp://a.example/', 'https://user:pass@a.example/', 'javascript:alert(1)'])
    expect([url, await create({ url })]).toEqual([url, 'VALIDATION_ERROR']);
  for (const name of ['webhook-id', 'Host', 'Content-Length', 'Transfer-Encoding', 'a\r\nb'])
    expect([name, await create({ url: 'https://a.example/', headers: { [name]: 'x' } })]).toEqual([
      name,
      'VALIDATION_ERROR',
    ]);
});
