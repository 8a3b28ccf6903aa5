import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  connectSource,
  createAlertRule,
  createEndpoint,
  createSource,
  decideApproval,
  deleteConnection,
  deleteEndpoint,
  getAlert,
  getEndpoint,
  getMessage,
  leaseItems,
  listAlerts,
  listSchedules,
  pauseSchedule,
  publishMessage,
  putItem,
  replayDelivery,
  replayMessage,
  rerunRun,
  type SourceName,
  setSecret,
  updateAlertRule,
  updateEndpoint,
} from '../../../src/contracts/index.ts';
import { days, hours, minutes, seconds } from '../../../src/kit/time/duration.ts';
import { ALL, type AlertPlatform, startAlertPlatform } from '../../support/alert-platform.ts';
import { sharedByTests } from '../../support/at-end.ts';
import { selfSigned } from '../../support/certificates.ts';
import { tempDir } from '../../support/daemon.ts';
import { OTHER_TOKEN } from '../../support/gateway.ts';
import { startOAuthProvider } from '../../support/oauth-provider.ts';
import { githubSignature, send } from '../../support/source-senders.ts';
import { describeOnStores } from '../../support/stores.ts';
import { callbackOf, connect } from './connections/support.ts';

const FIRED = ['alert.firing'];
const ENDED = ['alert.firing', 'alert.resolved'];

// Each test raises an alert by the failure itself, receives it at a channel of its own, and sees it end.
describeOnStores(
  'each kind of alert',
  (config) => {
    const shared = sharedByTests(async () => startAlertPlatform(await config()));

    /** The only alert of a rule. */
    async function alertOf({ gateway }: AlertPlatform, rule: string) {
      const { items } = await gateway.call(listAlerts, { query: { rule } });
      expect(items).toHaveLength(1);
      return items[0]!;
    }

    /** The state of the only alert of a rule, or undefined without one. */
    const stateOf = async ({ gateway }: AlertPlatform, rule: string) =>
      (await gateway.call(listAlerts, { query: { rule } })).items.map(({ state }) => state);

    test('run.failed: a failed rerun counts at the first run, and a successful one ends the alert', async () => {
      const platform = shared();
      const { workflow, answers, receiver } = platform;
      const { types, messages, name } = await platform.observe('run.failed', {
        match: { workflow: 'ship*' },
      });
      answers.set('/job', 400);
      const step = { id: 'call', uses: 'http', with: { url: `${receiver.url}/job` } };
      const first = await workflow.start({ id: 'ship', steps: [step] });
      await workflow.start({ id: 'other', steps: [step] });
      await workflow.until(first, 'failed');
      await platform.until(types, FIRED);
      expect(messages()[0].data.alerts).toMatchObject([
        {
          title: 'A run of ship failed',
          object: { type: 'run', id: first, namespaceId: 'default' },
          link: expect.stringMatching(new RegExp(`/studio/runs/${first}$`)),
        },
      ]);
      const rerun = async (runId: string) =>
        (await workflow.call(rerunRun, { params: { runId }, body: {} } as never)).run.id;
      const second = await rerun(first);
      await workflow.until(second, 'failed');
      await platform.until(async () => (await alertOf(platform, name)).count, 2);
      answers.delete('/job');
      await workflow.until(await rerun(second), 'succeeded');
      await platform.until(types, ENDED);
      expect(await alertOf(platform, name)).toMatchObject({ state: 'resolved', object: { id: first } });
    });

    test('run.failed: a run that timed out is reported', async () => {
      const platform = shared();
      const { workflow } = platform;
      const { types, messages } = await platform.observe('run.failed', { match: { workflow: 'slow' } });
      const id = await workflow.start({
        ...{ id: 'slow', timeoutMs: 5000 },
        steps: [{ uses: 'wait', with: { ms: 1e9 } }],
      });
      await platform.until(async () => (await workflow.run(id)).status, 'timed_out', 1000);
      await platform.until(types, FIRED);
      expect(messages()[0].data.alerts[0].title).toBe('A run of slow timed out');
    });

    test('approval.waiting: a run that waits for longer than the threshold is reported until it is decided', async () => {
      const platform = shared();
      const { workflow, gateway } = platform;
      const waitingMs = minutes(30);
      const { types, messages } = await platform.observe('approval.waiting', { threshold: { waitingMs } });
      const id = await workflow.start({ id: 'ask', steps: [{ id: 'ok', uses: 'approval' }] });
      await workflow.until(id, 'waiting');
      gateway.clock.advance(waitingMs - seconds(15));
      await platform.until(() => gateway.clock.now(), expect.any(Number));
      expect(types()).toEqual([]);
      gateway.clock.advance(seconds(20));
      await platform.until(types, FIRED);
      expect(messages()[0].data.alerts).toMatchObject([
        { title: 'A run of ask waits for approval', object: { type: 'run', id } },
      ]);
      const body = { approved: true };
      await workflow.call(decideApproval, { params: { runId: id, stepId: 'main.ok' }, body } as never);
      await platform.until(types, ENDED);
    });

    test('delivery.failed: a failed delivery is reported, and a successful replay ends the alert', async () => {
      const platform = shared();
      const { gateway, receiver, answers } = platform;
      const { types, name } = await platform.observe('delivery.failed', { match: { source: 'gh' } });
      const source = 'gh' as SourceName;
      const { url, secret } = await gateway.call(createSource, {
        body: { name: source, provider: 'github' },
      });
      await gateway.call(connectSource, {
        params: { name: source },
        body: {
          forward: `${receiver.url}/forwarded`,
          retry: { maxAttempts: 2, backoff: { initialMs: 20 } },
        } as never,
      });
      answers.set('/forwarded', 500);
      const text = JSON.stringify({ n: 1 });
      await send(gateway.url + new URL(url).pathname, text, {
        ...githubSignature(secret, text),
        ...{ 'x-github-delivery': 'd-1', 'x-github-event': 'push' },
      });
      await platform.until(types, FIRED);
      const replay = async (webhookId: string) =>
        (await gateway.call(replayDelivery, { params: { webhookId } as never })).webhookId;
      const again = await replay((await alertOf(platform, name)).object.id);
      await platform.until(async () => (await alertOf(platform, name)).count, 2);
      answers.delete('/forwarded');
      await replay(again);
      await platform.until(types, ENDED);
      expect((await alertOf(platform, name)).state).toBe('resolved');
    });

    test('delivery.failed: a message that an endpoint did not take is reported, and a replay ends the alert', async () => {
      const platform = shared();
      const { gateway, receiver, answers } = platform;
      const { types, messages } = await platform.observe('delivery.failed', { match: { endpoint: 'ep_*' } });
      answers.set('/down', 500);
      const body = { url: `${receiver.url}/down`, types: ['down'], retrySchedule: [] };
      const { id: endpoint } = await gateway.call(createEndpoint, { body });
      const { id } = await gateway.call(publishMessage, { body: { type: 'down', data: 1 } });
      await platform.until(types, FIRED);
      expect(messages()[0].data.alerts).toMatchObject([
        {
          title: `The endpoint ${endpoint} did not take a message`,
          object: { type: 'message', id: `${id}/${endpoint}` },
          link: expect.stringMatching(new RegExp(`/studio/messages/${id}$`)),
        },
      ]);
      answers.delete('/down');
      await gateway.call(replayMessage, { params: { id }, body: {} });
      await platform.until(types, ENDED);
      // A replay of a message that has arrived ends nothing.
      await gateway.call(replayMessage, { params: { id }, body: {} });
      await expect
        .poll(async () => (await gateway.call(getMessage, { params: { id } })).deliveries.succeeded)
        .toBe(1);
      await gateway.call(deleteEndpoint, { params: { id: endpoint } });
    });

    test('endpoint.disabled: 410 disables an endpoint, and its alert ends when it is enabled', async () => {
      const platform = shared();
      const { gateway, receiver, answers } = platform;
      const { types, messages } = await platform.observe('endpoint.disabled', {
        match: { application: 'app' },
      });
      answers.set('/gone', 410);
      const body = { url: `${receiver.url}/gone`, types: ['gone'], application: 'app' };
      const { id } = await gateway.call(createEndpoint, { body });
      await gateway.call(publishMessage, { body: { type: 'gone', data: 1, application: 'app' } });
      await platform.until(types, FIRED);
      expect(messages()[0].data.alerts).toMatchObject([
        { title: `The endpoint ${id} was disabled`, object: { type: 'endpoint', id } },
      ]);
      await gateway.call(updateEndpoint, { params: { id }, body: { disabled: false } });
      await platform.until(types, ENDED);
      await gateway.call(publishMessage, { body: { type: 'gone', data: 2, application: 'app' } });
      await platform.until(types, [...ENDED, 'alert.firing']);
      await gateway.call(deleteEndpoint, { params: { id } });
      await platform.until(types, [...ENDED, ...ENDED]);
    });

    test('queue.depth: a queue that is too old is reported until its items are taken', async () => {
      const platform = shared();
      const { gateway } = platform;
      const threshold = { oldestAgeMs: minutes(10) };
      const { types, messages } = await platform.observe('queue.depth', {
        match: { queue: 'jobs' },
        threshold,
      });
      const params = { name: 'jobs' };
      await gateway.call(putItem, { params, body: { id: 'a', body: 1 } });
      gateway.clock.advance(minutes(9));
      await platform.until(types, []);
      gateway.clock.advance(minutes(2));
      await platform.until(types, FIRED);
      expect(messages()[0].data.alerts[0].message).toContain('The oldest item has waited for 11');
      await gateway.call(leaseItems, { params, body: { max: 1 } } as never);
      await platform.until(types, ENDED);
    });

    test('secret.expiring: a secret is reported until it is renewed', async () => {
      const platform = shared();
      const { gateway } = platform;
      const { types, messages } = await platform.observe('secret.expiring', { match: { secret: 'API_*' } });
      const set = (name: string, inMs: number | null) =>
        gateway.call(setSecret, {
          params: { name } as never,
          body: { value: 'a-secret-value', expiresAt: inMs === null ? null : gateway.clock.now() + inMs },
        });
      await set('API_KEY', days(13));
      await set('API_LATER', days(15));
      await set('OTHER', days(1));
      await platform.until(types, FIRED, 1000);
      expect(messages()[0].data.alerts).toMatchObject([
        { title: 'The secret API_KEY expires soon', object: { id: 'default/secret/API_KEY' } },
      ]);
      expect(JSON.stringify(messages())).not.toContain('a-secret-value');
      await set('API_KEY', null);
      await platform.until(types, ENDED, 1000);
    });

    test('secret.expiring: a connection without a refresh token, and one that fails, are reported', async () => {
      const platform = shared();
      const { gateway } = platform;
      const [expiring, failing] = [
        await platform.observe('secret.expiring', { match: { connection: 'short' } }),
        await platform.observe('secret.expiring', { match: { connection: 'revoked' } }),
      ];
      const provider = await startOAuthProvider();
      provider.trust(callbackOf(gateway));
      const place = { gateway, provider };
      const connection = await connect(place, { name: 'short', scopes: ['openid', 'email', 'items:read'] });
      expect(connection).toMatchObject({ status: 'active' });
      await connect(place, { name: 'revoked' });
      await platform.until(expiring.types, FIRED, 1000);
      expect(expiring.messages()[0].data.alerts[0].title).toBe('The connection short expires soon');
      await gateway.call(deleteConnection, { params: { name: 'short' } });
      await platform.until(expiring.types, ENDED, 1000);
      expect(failing.types()).toEqual([]);
      provider.tamper((_request, response) => {
        response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}');
        return true;
      });
      await platform.until(failing.types, FIRED, seconds(30));
      expect(failing.messages()[0].data.alerts[0].title).toBe('The connection revoked fails');
      await gateway.call(deleteConnection, { params: { name: 'revoked' } });
      await platform.until(failing.types, ENDED, 1000);
    });

    test('certificate.expiring: files and servers are reported until their certificate is renewed', async () => {
      const platform = shared();
      const { gateway } = platform;
      const left = (gateway.clock.now() - Date.now()) / days(1);
      const [soon, later] = [await selfSigned(Math.ceil(left) + 10), await selfSigned(Math.ceil(left) + 100)];
      const file = join(await tempDir(), 'cert.pem');
      await copyFile(soon.file, file);
      const server = createServer({ key: soon.key, cert: soon.cert });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void server.close());
      const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const certificates = [file, url, later.file, join(await tempDir(), 'missing.pem')];
      const { types, messages } = await platform.observe('certificate.expiring', {
        ...{ threshold: { certificates }, groupBy: ['object'] },
      });
      await platform.until(types, [...FIRED, ...FIRED, ...FIRED]);
      const titles = () => messages().map(({ data }) => data.alerts[0].title as string);
      expect(titles().toSorted()).toEqual(
        [
          `The certificate of ${file} expires soon`,
          `The certificate of ${url} expires soon`,
          `The certificate of ${certificates[3]} cannot be read`,
        ].toSorted(),
      );
      await copyFile(later.file, file);
      server.setSecureContext({ key: later.key, cert: later.cert });
      await copyFile(later.file, certificates[3]!);
      gateway.clock.advance(minutes(10));
      await platform.until(() => types().filter((type) => type === 'alert.resolved').length, 3, 1000);
    });

    test('a rule of a namespace sees no runs, secrets and queues of other namespaces', async () => {
      const platform = shared();
      const { gateway, workflow } = platform;
      const body = { value: 'a-secret-value', expiresAt: gateway.clock.now() + days(1) };
      const params = { name: 'OF_ALL' } as never;
      for (const token of [undefined, OTHER_TOKEN]) {
        await gateway.call(setSecret, { params, body }, token);
        const item = { params: { name: 'shared' }, body: { id: 'a', body: 1 } };
        await gateway.call(putItem, item, token);
      }
      for (const tenant of ['default', 'other']) {
        const steps = [{ id: 'ok', uses: 'approval' }];
        await workflow.start({ id: 'asks', steps }, { tenant });
      }
      const rules = [
        { name: 'secrets', kind: 'secret.expiring' },
        { name: 'approvals', kind: 'approval.waiting', threshold: { waitingMs: 1 } },
        { name: 'queues', kind: 'queue.depth', match: { queue: 'shared' }, threshold: { depth: 1 } },
      ];
      for (const rule of rules) await gateway.call(createAlertRule, { body: rule as never }, OTHER_TOKEN);
      const found = async () =>
        (await gateway.call(listAlerts, { query: {} }, OTHER_TOKEN)).items
          .map(({ rule, object }) => `${rule} ${object.namespaceId}`)
          .toSorted();
      await platform.until(found, ['approvals other', 'queues other', 'secrets other'], 1000);
    });

    test('disk.low: little space is reported until the threshold is met again', async () => {
      const platform = shared();
      const { gateway } = platform;
      const { types, messages, name } = await platform.observe('disk.low', {
        threshold: { freePercent: 100 },
      });
      await platform.until(types, FIRED);
      expect(messages()[0].data.alerts[0]).toMatchObject({
        title: expect.stringContaining('is almost full'),
        message: expect.stringMatching(/^\d+ MB \([\d.]+ %\) are free for the data folder\.$/),
      });
      const change = { threshold: { freeBytes: 1 } };
      await gateway.call(updateAlertRule, { ...ALL, params: { name }, body: change });
      await platform.until(types, ENDED, 1000);
    });

    test('service.crash_loop: files of the supervisor are reported, and end without a further loop', async () => {
      const platform = shared();
      const { gateway } = platform;
      const { types, messages } = await platform.observe('service.crash_loop');
      const folder = join(gateway.dataDir, 'crash-loops');
      await mkdir(folder, { recursive: true });
      const loop = {
        service: 'rest',
        node: 'n1',
        crashes: 5,
        reason: 'exit code 1',
        at: gateway.clock.now(),
      };
      await writeFile(join(folder, '1-rest.json'), JSON.stringify(loop));
      await platform.until(types, FIRED);
      expect(messages()[0].data.alerts[0].object.id).toBe('n1/rest');
      gateway.clock.advance(minutes(11));
      await platform.until(types, ENDED, 1000);
    });

    test('endpoint.disabled: five days of failures disable an endpoint', async () => {
      const platform = shared();
      const { gateway, receiver, answers } = platform;
      const { types, messages } = await platform.observe('endpoint.disabled', {
        match: { application: 'old' },
      });
      answers.set('/old', 500);
      const body = { url: `${receiver.url}/old`, types: ['old'], application: 'old', retrySchedule: [] };
      const { id } = await gateway.call(createEndpoint, { body });
      const fail = async () => {
        const sent = { type: 'old', data: 1, application: 'old' };
        const message = await gateway.call(publishMessage, { body: sent });
        const read = () => gateway.call(getMessage, { params: { id: message.id } });
        await expect.poll(async () => (await read()).deliveries.dead).toBe(1);
      };
      await fail();
      gateway.clock.advance(days(5));
      await fail();
      await platform.until(types, FIRED);
      expect(messages()[0].data.alerts[0].message).toBe('Reason: failures.');
      const endpoint = () => gateway.call(getEndpoint, { params: { id } });
      expect(await endpoint()).toMatchObject({ disabled: true, disabledReason: 'failures' });
      answers.delete('/old');
      await gateway.call(updateEndpoint, { params: { id }, body: { disabled: false } });
      await platform.until(types, ENDED);
    });

    test('schedule.missed: a due time that passed while the machine slept is reported, and ends after a day', async () => {
      const platform = shared();
      const { gateway, workflow } = platform;
      const { types, messages, name } = await platform.observe('schedule.missed', {
        match: { schedule: 'nightly*' },
      });
      gateway.clock.jump(Math.ceil(gateway.clock.now() / days(1)) * days(1) + days(1) + hours(12));
      await platform.until(types, FIRED, seconds(10));
      expect(messages()[0].data.alerts[0]).toMatchObject({
        title: expect.stringMatching(/^The schedule nightly.* missed a run$/),
        message: expect.stringContaining('No run of nightly started for 20'),
      });
      const [schedule] = (await workflow.call(listSchedules)).items;
      await workflow.call(pauseSchedule, { params: { scheduleId: schedule!.id } } as never);
      // Events end without a message.
      gateway.clock.jump(gateway.clock.now() + days(2));
      await platform.until(async () => (await stateOf(platform, name)).at(-1), 'resolved', seconds(10));
      const [alert] = (await gateway.call(listAlerts, { query: { rule: name } })).items;
      const details = await gateway.call(getAlert, { params: { id: alert!.id } });
      expect(details.notifications.every(({ reason }) => reason === 'firing')).toBe(true);
    });
  },
  { timeout: 120_000 },
);
