import { join } from 'node:path';
import { expect } from 'vitest';
import { createPeers } from '../../../src/daemons/peers.ts';
import { rest } from '../../../src/daemons/rest/index.ts';
import { serviceHeaders } from '../../../src/http/index.ts';
import { startTestDaemon, TEST_KEYS, type TestDaemonOptions } from '../../support/daemon.ts';

export const REST_PROJECT = join(import.meta.dirname, '../../fixtures/projects/rest');

/** The real REST daemon on the project of `test/fixtures/projects/rest`, or another. */
export function startRest(options: TestDaemonOptions = {}) {
  return startTestDaemon(rest, { projectDir: REST_PROJECT, peers: createPeers(), ...options });
}
export type TestRest = Awaited<ReturnType<typeof startRest>>;

/** Headers with which the gateway calls on behalf of somebody. */
export const asCaller = (hostId: string, namespaceId = 'default') =>
  serviceHeaders(TEST_KEYS.internalSecret, { hostId, namespaceId });

/** Sends JSON to a plugin route and reads the JSON that comes back. */
export async function send(
  daemon: TestRest,
  method: string,
  path: string,
  { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
): Promise<{ status: number; headers: Headers; body: never }> {
  const response = await daemon.fetch(path, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: (text ? JSON.parse(text) : undefined) as never,
  };
}

/** Waits until a plugin's processes have so many calls: `running` on them, `queued` before them. */
export async function untilLoad(
  daemon: TestRest,
  pluginId: string,
  state: 'running' | 'queued',
  calls = 1,
): Promise<void> {
  const line = `svc_plugin_calls_${state}{service="rest",plugin="${pluginId}"} ${calls}`;
  await expect
    .poll(async () => (await (await daemon.fetch('/metrics')).text()).split('\n'), { timeout: 15_000 })
    .toContain(line);
}

/** A log record or event of a stream, with the id of its message. */
export interface StreamedRecord {
  id: string;
  message: string;
  type: string;
}

/** Reads records of a stream until there are `count`. */
export async function readRecords(response: Response, count: number): Promise<StreamedRecord[]> {
  const events: StreamedRecord[] = [];
  let text = '';
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const blocks = text.split('\n\n');
    text = blocks.pop()!;
    for (const block of blocks) {
      const found = /^id: (\d+)\ndata: (.*)$/.exec(block);
      if (found) events.push({ ...JSON.parse(found[2]!), id: found[1]! });
    }
    if (events.length >= count) return events;
  }
  return events;
}
