import { join } from 'node:path';
import webhooks from '@octokit/webhooks-examples';
import { expect, test } from 'vitest';
import type { CommandResult } from '../../src/contracts/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { rest } from '../../src/daemons/rest/index.ts';
import { state } from '../../src/daemons/state/index.ts';
import { serviceHeaders } from '../../src/http/index.ts';
import { startTestDaemon, TEST_KEYS } from '../support/daemon.ts';
import { openApiFaults } from '../support/openapi.ts';

const PROJECT = join(import.meta.dirname, '../../examples');
type Payload = Record<string, unknown>;

/** GitHub's own examples of an event. */
const examples = (event: string): Payload[] =>
  (webhooks as unknown as Array<{ name: string; examples: Payload[] }>).find(({ name }) => name === event)!
    .examples;

/** The example plugin in the real runner, its state in the real state daemon. */
async function startGithub() {
  const store = await startTestDaemon(state);
  const daemon = await startTestDaemon(rest, {
    projectDir: PROJECT,
    peers: createPeers({ state: store.url }),
  });
  const { plugins } = daemon.services;

  /** Runs a webhook handler as the gateway does after it has checked the delivery. */
  async function deliver(
    event: string,
    payload: unknown,
    tenantId = 'default',
  ): Promise<Record<string, unknown>> {
    const { plugin, webhook } = plugins.registry.requireWebhook('github', event);
    const outcome: CommandResult = await plugins.execute({
      plugin,
      handler: webhook.handler,
      host: 'webhook',
      hostContext: {
        host: 'webhook',
        event,
        namespaceId: tenantId,
        webhookId: 'w',
        source: '127.0.0.1',
        payload,
      },
      input: payload,
      params: {},
      user: null,
      tenantId,
      requestId: 'req',
      traceId: 'trace',
    });
    expect(outcome).toMatchObject({ exitCode: 0 });
    return outcome.result as Record<string, unknown>;
  }

  async function get(path: string, tenant = 'default') {
    const headers = serviceHeaders(TEST_KEYS.internalSecret, { namespaceId: tenant, hostId: 'ci' });
    const response = await daemon.fetch(`/api/v1/plugins/github${path}`, { headers });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }
  return { daemon, deliver, get };
}

test('it loads, and says how GitHub signs', async () => {
  const { daemon } = await startGithub();
  const { registry } = daemon.services.plugins;
  expect(registry.broken).toEqual([]);
  const { manifest } = registry.require('github');
  expect(
    manifest.webhooks.map(({ event, auth, idempotencyKey }) => ({ event, auth, idempotencyKey })),
  ).toEqual(
    ['issues', 'push'].map((event) => ({
      event,
      auth: { type: 'provider', provider: 'github' },
      idempotencyKey: 'header:x-github-delivery',
    })),
  );
  expect(await openApiFaults(await (await daemon.fetch('/openapi-plugins.json')).json())).toEqual([]);
});

test('every issues example of GitHub is counted and told in one sentence', async () => {
  const { deliver, get } = await startGithub();
  const counts: Record<string, number> = {};
  const payloads = examples('issues');
  for (const payload of payloads) {
    const { action, repository } = payload as { action: string; repository: { full_name: string } };
    const answer = await deliver('issues', payload);
    expect(answer).toMatchObject({
      event: 'issues',
      counted: true,
      action,
      repository: repository.full_name,
    });
    expect(answer.summary).toMatch(/^Codertocat [a-z]+ issue #\d+ ".+" in [\w-]+\/[\w-]+$/);
    if (repository.full_name !== 'Codertocat/Hello-World') continue;
    counts.issues = (counts.issues ?? 0) + 1;
    counts[`issues.${action}`] = (counts[`issues.${action}`] ?? 0) + 1;
    expect(answer.totals).toEqual({
      issues: counts.issues,
      [`issues.${action}`]: counts[`issues.${action}`],
    });
  }
  expect(payloads.length).toBeGreaterThan(20);
  expect(await get('/repositories/Codertocat/Hello-World')).toEqual({
    status: 200,
    body: { repository: 'Codertocat/Hello-World', counts },
  });
});

test('every push example of GitHub is counted, tags and deletions too', async () => {
  const { deliver, get } = await startGithub();
  const payloads = examples('push') as Array<{ ref: string; commits: unknown[]; deleted: boolean }>;
  for (const payload of payloads) {
    const { summary } = await deliver('push', payload);
    const name = payload.ref.split('/').at(-1);
    const done = payload.deleted
      ? `deleted the tag ${name} of`
      : payload.ref.startsWith('refs/tags/')
        ? `pushed the tag ${name} to`
        : `pushed ${payload.commits.length} commit to ${name} of`;
    expect(summary).toBe(`Codertocat ${done} Codertocat/Hello-World`);
  }
  const { body } = await get('/repositories/codertocat/hello-world');
  expect(body).toEqual({
    repository: 'Codertocat/Hello-World',
    counts: {
      pushes: payloads.length,
      commits: payloads.reduce((sum, { commits }) => sum + commits.length, 0),
    },
  });
});

test('deliveries that arrive together are all counted', async () => {
  const { deliver, get } = await startGithub();
  const [payload] = examples('issues');
  await Promise.all(Array.from({ length: 12 }, () => deliver('issues', payload)));
  expect((await get('/repositories/Codertocat/Hello-World')).body.counts).toMatchObject({ issues: 12 });
});

test('what is no event of a repository counts nothing', async () => {
  const { deliver, get } = await startGithub();
  const [issue] = examples('issues') as [Payload];
  const [push] = examples('push') as [Payload];
  const odd: Array<[what: string, event: string, payload: unknown]> = [
    ['a ping', 'issues', examples('ping')[0]],
    ['a ping', 'push', examples('ping')[0]],
    ['a comment', 'issues', examples('issue_comment')[0]],
    ['a push', 'issues', push],
    ['an issue', 'push', issue],
    ['nothing', 'issues', undefined],
    ['null', 'push', null],
    ['a text', 'push', 'push'],
    ['a list', 'issues', [issue]],
    ['no repository', 'push', { ...push, repository: undefined }],
    [
      'a repository whose name is a path',
      'issues',
      { ...issue, repository: { full_name: '../../etc/passwd' } },
    ],
    ['a repository whose name is no text', 'issues', { ...issue, repository: { full_name: { a: 1 } } }],
    ['an issue without a number', 'issues', { ...issue, issue: { title: 'x' } }],
  ];
  for (const [what, event, payload] of odd) {
    expect(await deliver(event, payload), what).toEqual({
      event,
      counted: false,
      summary: expect.any(String),
    });
  }
  expect((await get('/repositories')).body).toEqual({ items: [], nextCursor: null });
});

test('odd parts of a real event are left out of the sentence', async () => {
  const [issue] = examples('issues') as [Payload];
  const [push] = examples('push') as [Payload];
  const { deliver, get } = await startGithub();
  const odd = {
    ...issue,
    action: 'x'.repeat(500),
    sender: null,
    issue: { number: 3, title: 'y'.repeat(5000) },
  };
  const answer = await deliver('issues', odd);
  expect(answer).toMatchObject({ counted: true, action: 'changed', sender: 'somebody' });
  expect(String(answer.summary).length).toBeLessThan(250);
  expect((await get('/repositories/Codertocat/Hello-World')).body.counts).toEqual({
    issues: 1,
    'issues.changed': 1,
  });
  expect(await deliver('push', { ...push, commits: 'many' })).toMatchObject({ counted: true, commits: 0 });
});

test('a repository that no delivery named is the declared 404', async () => {
  const { get } = await startGithub();
  for (const name of ['octocat/nothing', '%20/x', `a/${'b'.repeat(600)}`]) {
    expect(await get(`/repositories/${name}`), name).toEqual({
      status: 404,
      body: {
        error: {
          code: 'REPOSITORY_NOT_SEEN',
          message: expect.any(String),
          details: { repository: expect.any(String) },
        },
      },
    });
  }
});

test('the list goes page by page, in the order of the names; other tenants see their own', async () => {
  const { deliver, get } = await startGithub();
  const [payload] = examples('push') as [Payload];
  for (const name of ['b/two', 'a/one', 'c/three']) {
    await deliver('push', { ...payload, repository: { full_name: name } });
  }
  await deliver('push', payload, 'acme');
  const first = await get('/repositories?limit=2');
  expect(first.body.items).toEqual([
    { repository: 'a/one', counts: { pushes: 1, commits: 0 } },
    { repository: 'b/two', counts: { pushes: 1, commits: 0 } },
  ]);
  const second = await get(
    `/repositories?limit=2&cursor=${encodeURIComponent(String(first.body.nextCursor))}`,
  );
  expect(second.body).toEqual({
    items: [{ repository: 'c/three', counts: { pushes: 1, commits: 0 } }],
    nextCursor: null,
  });
  expect((await get('/repositories', 'acme')).body.items).toHaveLength(1);
  expect((await get('/repositories/a/one', 'acme')).status).toBe(404);
  expect((await get('/repositories?limit=1000')).status).toBe(400);
  expect((await get('/repositories?limit=two')).status).toBe(400);
});
