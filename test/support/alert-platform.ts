import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type AlertKind, createAlertChannel, createAlertRule } from '../../src/contracts/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { manualClock } from '../../src/kit/time/clock.ts';
import { days } from '../../src/kit/time/duration.ts';
import { startWorkflow, type TestWorkflow } from '../daemons/workflow/support/workflow.ts';
import type { AnyJson } from './any-json.ts';
import { tempDir } from './daemon.ts';
import { startGateway, type TestGateway } from './gateway.ts';
import { type Receiver, startReceiver } from './source-senders.ts';

/** Rules and channels of operators. */
export const ALL = { query: { namespaceId: '*' as const } };
/** Tests move the clock by days at once, which must not make credentials stale. */
export const PATIENT = { staleMs: days(100) };
export const FAST = { intervalMs: 100 };

/** Moves the clock in small steps until `read` returns what is expected. */
export async function until<Value>(
  { clock }: Pick<TestGateway, 'clock'>,
  read: () => Promise<Value> | Value,
  expected: unknown,
  stepMs = 200,
): Promise<void> {
  await expect
    .poll(
      async () => {
        clock.advance(stepMs);
        return read();
      },
      { timeout: 30_000, interval: 20 },
    )
    .toEqual(expected);
}

export interface Observed {
  /** Name of the rule and of its channel. */
  name: string;
  /** Messages that the channel received, such as `alert.firing`. */
  types(): string[];
  messages(): AnyJson[];
}

export interface AlertPlatform {
  gateway: TestGateway;
  workflow: TestWorkflow;
  /** Receives alerts, and requests of other paths with the answers that tests set. */
  receiver: Receiver;
  /** Answers by path. Other paths are answered with 200. */
  answers: Map<string, number>;
  /** Creates a channel of its own and a rule that uses it. */
  observe(kind: AlertKind, rule?: object): Promise<Observed>;
  until<Value>(read: () => Promise<Value> | Value, expected: unknown, stepMs?: number): Promise<void>;
}

const NIGHTLY = `id: nightly
on:
  schedule:
    - { cron: "0 3 * * *", catchUp: none }
jobs:
  main:
    steps:
      - { uses: set }
`;

/** A gateway and a workflow service with one clock and one receiver. */
export async function startAlertPlatform(config: object): Promise<AlertPlatform> {
  const clock = manualClock();
  const projectDir = await tempDir();
  await mkdir(join(projectDir, 'workflows'));
  await writeFile(join(projectDir, 'workflows/nightly.yaml'), NIGHTLY);
  const receiver = await startReceiver();
  const answers = new Map<string, number>();
  receiver.answer = ({ url }) => ({ status: answers.get(url) ?? 200, body: '{}' });
  const shared = { ...config, auth: PATIENT };
  const workflow = await startWorkflow({
    ...{ clock, projectDir },
    config: { ...shared, workflow: { httpAllow: ['127.0.0.1'] } },
  });
  const gateway = await startGateway({
    clock,
    config: { ...shared, alerts: FAST, outgoing: { allowPrivateAddresses: true } },
    peers: createPeers({ workflow: workflow.url }),
  });
  let rules = 0;
  return {
    ...{ gateway, workflow, receiver, answers },
    async observe(kind, rule = {}) {
      const name = `r${++rules}`;
      const body = { name, type: 'webhook' as const, url: `${receiver.url}/alerts/${name}` };
      await gateway.call(createAlertChannel, { ...ALL, body });
      const settings = { kind, channels: [name], groupWaitMs: 0, ...rule };
      await gateway.call(createAlertRule, { ...ALL, body: { name, ...settings } as never });
      const messages = () =>
        receiver.received
          .filter(({ url }) => url === `/alerts/${name}`)
          .map(({ body: bytes }) => JSON.parse(bytes.toString()));
      return { name, messages, types: () => messages().map(({ type }) => type) };
    },
    until: (read, expected, stepMs) => until(gateway, read, expected, stepMs),
  };
}
